package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
)

const (
	namespaced = "/api/v1/namespaces/default/"
	secrets    = namespaced + "secrets"
	services   = namespaced + "services"
	slicesPath = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
)

// managers checks managedFields, as: manager operation fields.
func (a answer) managers(want ...string) answer {
	a.t.Helper()
	var got []string
	list, _ := object.Metadata(a.tree())["managedFields"].([]any)
	for _, e := range list {
		entry := e.(object.Tree)
		got = append(got, fmt.Sprintf("%s %s %s", entry["manager"], entry["operation"], object.AppendJSON(nil, entry["fieldsV1"])))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		a.t.Errorf("managers\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return a
}

func typed(apiVersion, kind, fields string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"},%s}`, apiVersion, kind, fields)
}

func secret(fields string) string { return typed("v1", "Secret", fields) }

// "stringData is provided as a write-only convenience method": its writer owns data, so a manager
// that applies data gets a conflict.
func TestOwnersOfStringData(t *testing.T) {
	x := secrets + "/x"
	const conflict = `Apply failed with 1 conflict: conflict with %q%s: .data.a`
	for _, tt := range []struct {
		name  string
		write func(s *server)
	}{
		{"post", func(s *server) { s.post(secrets+"?fieldManager=one", secret(`"stringData":{"a":"b"}`)).is(201) }},
		{"put", func(s *server) {
			s.post(secrets+"?fieldManager=zero", secret(`"data":{"a":"Wlpa"}`)).is(201)
			s.put(x+"?fieldManager=one", secret(`"stringData":{"a":"b"}`)).is(200)
		}},
		{"merge patch", func(s *server) {
			s.post(secrets+"?fieldManager=zero", secret(`"data":{"a":"Wlpa"}`)).is(201)
			s.merge(x+"?fieldManager=one", `{"stringData":{"a":"b"}}`).is(200)
		}},
		{"strategic merge patch", func(s *server) {
			s.post(secrets+"?fieldManager=zero", secret(`"data":{"a":"Wlpa"}`)).is(201)
			s.do("PATCH", x+"?fieldManager=one", "application/strategic-merge-patch+json", `{"stringData":{"a":"b"}}`).is(200)
		}},
		{"JSON patch", func(s *server) {
			s.post(secrets+"?fieldManager=zero", secret(`"data":{"a":"Wlpa"}`)).is(201)
			s.do("PATCH", x+"?fieldManager=one", "application/json-patch+json", `[{"op":"add","path":"/stringData","value":{"a":"b"}}]`).is(200)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServerOf(t, builtin.Definitions()...)
			tt.write(s)
			s.apply(x, "two", secret(`"data":{"a":"Wlpa"}`)).message(409, fmt.Sprintf(conflict, "one", " using v1"))
			s.get(x).is(200, `"data":{"a":"Yg=="}`)
			// A manager that applies stringData owns stringData, a field that no object has.
			s.apply(x, "two", secret(`"stringData":{"a":"b"}`)).is(200, `"data":{"a":"Yg=="}`)
			s.apply(x, "three", secret(`"stringData":{"k":"v"}`)).is(200, `"data":{"a":"Yg==","k":"dg=="}`)
		})
	}

	s := newServerOf(t, builtin.Definitions()...)
	s.apply(x, "one", secret(`"data":{"a":"Wlpa"}`)).is(201)
	s.merge(x+"?fieldManager=two", `{"stringData":{"a":"q"}}`).is(200).managers(
		`two Update {"f:data":{"f:a":{}}}`)
}

// Defaults that decoding adds belong to the client, like the fields that it sent.
func TestOwnersOfDefaults(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	s.post(services+"?fieldManager=one", typed("v1", "Service", `"spec":{"clusterIP":"None","externalIPs":["1.2.3.4"],"ports":[{"port":80}]}`)).is(201).managers(
		`one Update {"f:spec":{"f:clusterIP":{},"f:externalIPs":{},"f:externalTrafficPolicy":{},"f:internalTrafficPolicy":{},` +
			`"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}},"f:sessionAffinity":{},"f:type":{}}}`)
	s.apply(services+"/x", "two", typed("v1", "Service", `"spec":{"type":"NodePort"}`)).is(409, `conflict with \"one\" using v1: .spec.type`)
	s.merge(services+"/x?fieldManager=three", `{"spec":{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{}}}}`).is(200, `"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}}`)
	if spec := s.merge(services+"/x", `{"spec":{"sessionAffinity":"None"}}`).is(200).tree()["spec"].(object.Tree); spec["sessionAffinityConfig"] != nil {
		t.Errorf("the configuration of no affinity stayed: %v", spec)
	}

	s.post(slicesPath+"?fieldManager=one", typed("discovery.k8s.io/v1", "EndpointSlice", `"addressType":"IPv4","ports":[{"port":80}]`)).is(201, `"ports":[{"name":"","port":80,"protocol":"TCP"}]`).managers(
		`one Update {"f:addressType":{},"f:ports":{}}`)
	s.post("/api/v1/namespaces?fieldManager=one", `{"metadata":{"name":"x"},"status":{"phase":"Terminating"}}`).is(201, `"phase":"Active"`).managers(
		`one Update {"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}`)
	s.merge("/api/v1/namespaces/x/status?fieldManager=two", `{"spec":{"finalizers":["a.b/c"]},"status":{"conditions":[{"type":"T","status":"True"}]}}`).is(200).managers(
		`one Update {"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}`,
		`two Update {"f:status":{"f:conditions":{".":{},"k:{\"type\":\"T\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}}}}`)
}

// An empty list belongs to the client that sent it while it is written, and is null once it is
// stored. So sending it again is a change.
func TestOwnersOfEmptyLists(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const roles, drivers = "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/storage.k8s.io/v1/csinodes"
	s.post(roles+"?fieldManager=one", `{"metadata":{"name":"x"},"rules":[]}`).is(201, `"rules":null`).managers(`one Update {"f:rules":{}}`)
	s.put(roles+"/x?fieldManager=two", `{"metadata":{"name":"x"},"rules":[]}`).is(200, `"rules":null`).managers(`two Update {"f:rules":{}}`)
	s.put(roles+"/x?fieldManager=three", `{"metadata":{"name":"x"},"rules":null}`).is(200).managers(`two Update {"f:rules":{}}`)
	s.apply(roles+"/x", "four", typed("rbac.authorization.k8s.io/v1", "ClusterRole", `"rules":[]`)).is(409, `conflict with \"two\" using rbac.authorization.k8s.io/v1: .rules`)
	s.post(drivers+"?fieldManager=one", `{"metadata":{"name":"x"},"spec":{"drivers":[]}}`).is(201, `"drivers":null`).managers(`one Update {"f:spec":{"f:drivers":{}}}`)
	s.post(drivers+"?fieldManager=one", `{"metadata":{"name":"y"},"spec":{"drivers":null}}`).is(201, `"drivers":null`).managers()
}

// Kinds that check the preconditions of a deletion themselves have their own messages.
func TestPreconditions(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const namespaces = "/api/v1/namespaces"
	made := s.post(namespaces, `{"metadata":{"name":"x"}}`).is(201).tree()
	s.delete(namespaces+"/x", `{"preconditions":{"uid":"y"}}`).message(409,
		`Operation cannot be fulfilled on namespaces "x": Precondition failed: UID in precondition: y, UID in object meta: `+object.UID(made))
	s.delete(namespaces+"/x", `{"preconditions":{"resourceVersion":"1000"}}`).message(409,
		`Operation cannot be fulfilled on namespaces "x": Precondition failed: ResourceVersion in precondition: 1000, ResourceVersion in object meta: `+object.ResourceVersion(made))
}

// A patch cannot change the kind of an object. A strategic merge patch with another kind is not
// rejected.
func TestPatchedKind(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const path = namespaced + "configmaps/x"
	s.post(namespaced+"configmaps", `{"metadata":{"name":"x"}}`).is(201)
	for _, tt := range []struct{ patch, wrong string }{
		{`{"kind":"X"}`, `no kind \"X\" is registered for version \"v1\"`},
		{`{"apiVersion":"v2"}`, `no kind \"ConfigMap\" is registered for version \"v2\"`},
		{`{"apiVersion":"a/b/c"}`, `unexpected GroupVersion string: a/b/c`},
		{`{"kind":5}`, `couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string`},
	} {
		s.merge(path, tt.patch).is(422, tt.wrong, `"field":"patch"`, `Invalid value: \"{\\\"apiVersion`)
	}
	for _, patch := range []string{`{"kind":null}`, `{"kind":""}`, `{"kind":"ConfigMap","apiVersion":"v1"}`} {
		s.merge(path, patch).is(200, `{"kind":"ConfigMap","apiVersion":"v1"`)
	}
	const strategic = "application/strategic-merge-patch+json"
	for _, patch := range []string{`{"kind":"X"}`, `{"apiVersion":"a/b/c"}`, `null`} {
		s.do("PATCH", path, strategic, patch).is(200, `{"kind":"ConfigMap","apiVersion":"v1"`)
	}
	// An error in the result is reported about the patch.
	s.do("PATCH", path, strategic, `{"data":{"a":5}}`).is(422, `Invalid value: \"map[data:map[a:5]]\": cannot convert int64 to string`)
	s.do("PATCH", path, strategic, `{"metadata":{"labels":"l"}}`).is(422, `Invalid value: \"map[metadata:map[labels:l]]\": cannot restore map from string`)
}

// The events of both groups are the same objects. An error names the kind of the storage, and
// appears once although metadata is validated twice.
func TestInvalidEvents(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const core, events = namespaced + "events", "/apis/events.k8s.io/v1/namespaces/default/events"
	event := func(name string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"eventTime":"2020-01-01T00:00:00.000001Z","regarding":{"namespace":"default"},
			"reportingController":"a/b","reportingInstance":"i","action":"a","reason":"r","type":"Normal"}`, name)
	}
	s.post(events, event("x")).is(201)
	s.merge(events+"/x", `{"reason":"q"}`).message(422, `Event "x" is invalid: reason: Invalid value: "q": field is immutable`)
	for _, path := range []string{events, core} {
		invalid := s.merge(path+"/x", `{"metadata":{"labels":{"?":"q"}}}`).is(422, `Event \"x\" is invalid: metadata.labels`).tree()
		if causes := invalid["details"].(object.Tree)["causes"].([]any); len(causes) != 1 || invalid["details"].(object.Tree)["group"] != nil {
			t.Errorf("details of %s: %v", path, invalid["details"])
		}
	}
	s.delete(events+"/x", `{"preconditions":{"uid":"z"}}`).is(409, `cannot be fulfilled on Event \"x\"`)
	s.get(events+"/y").message(404, `events.events.k8s.io "y" not found`)

	// Only the new group requires a DNS name.
	s.post(core, `{"metadata":{"name":"A_b"},"involvedObject":{"namespace":"default"}}`).is(201)
	s.post(events, event("C_d")).is(422, `metadata.name: Invalid value: \"C_d\": a lowercase RFC 1123 subdomain`)
	s.merge(events+"/A_b", `{"metadata":{"labels":{"a":"b"}}}`).is(200)
}

// An updated Node is validated like a new one, including its generateName.
func TestChangedNode(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	s.post("/api/v1/nodes", `{"metadata":{"name":"x"}}`).is(201)
	s.merge("/api/v1/nodes/x", `{"metadata":{"generateName":"a b"}}`).is(422, `metadata.generateName: Invalid value: \"a b\"`)
	s.merge("/api/v1/nodes/x", `{"metadata":{"generateName":"a-"}}`).is(200)
}

// The deletion of a Job warns about its pods, unless the Job is deleted because it is unreadable.
func TestWarningOfOrphans(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const jobs = "/apis/batch/v1/namespaces/default/jobs/none"
	if a := s.delete(jobs, "").is(404); len(a.header["Warning"]) != 1 {
		t.Errorf("warnings %s", a.header["Warning"])
	}
	if a := s.delete(jobs, `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`).is(404); a.header["Warning"] != nil {
		t.Errorf("warnings %s", a.header["Warning"])
	}
}
