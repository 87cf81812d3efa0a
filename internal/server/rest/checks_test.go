package rest_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
)

// An apply checks that the body has the name of the path before it checks the values of fields
// and the resourceVersion.
func TestApplyChecksNameFirst(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const large = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{NAME},"spec":{"minReadySeconds":9223372036854775807}}`
	const path = "/apis/apps/v1/namespaces/default/deployments/x"
	for name, want := range map[string]string{
		``:                                 "the name of the object (x based on URL) was undeterminable: name must be provided",
		`"name":"y","resourceVersion":"b"`: "the name of the object (y) does not match the name on the URL (x)",
	} {
		s.apply(path, "m", strings.Replace(large, "NAME", name, 1)).message(400, want)
	}
	s.apply(path, "m", strings.Replace(large, "NAME", `"name":"x"`, 1)).is(400, "cannot unmarshal number 9223372036854775807")
}

// A body that begins like JSON is parsed as JSON first, then as YAML.
func TestApplyOfBrokenYAML(t *testing.T) {
	s := newServer(t)
	s.apply(leads+"/a", "m", ` {"apiVersion":"`).message(400, "error decoding patch: error converting YAML to JSON: yaml: found unexpected end of stream")
	s.apply(leads+"/a", "m", `"apiVersion`).message(400, "error encoding patch: yaml: found unexpected end of stream")
}

// An apply without changes does not add defaults that only the version of the request has.
func TestApplyThroughAnotherVersion(t *testing.T) {
	d, other := lead(), lead().Versions[0]
	other.Name, other.Storage = "v2", false
	other.Schema = schema.Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a": {Type: "string"}, "old": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"x"`)}},
		}}
		return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}, nil
	}, model.Kind{Group: "test.example.com", Version: "v2", Kind: "Lead", ListKind: "LeadList"})
	d.Versions = append(d.Versions, other)
	s := newServerOf(t, resource.New(*d))
	path := strings.Replace(leads, "/v1/", "/v2/", 1) + "/a"
	s.post(leads, named("a", `,"spec":{"a":"b"}`)).is(201, `"generation":1`)
	before := object.ResourceVersion(s.get(path).tree())
	after := s.apply(path, "m", `{"apiVersion":"test.example.com/v2","kind":"Lead"}`).is(200, `"generation":1`)
	if now := object.ResourceVersion(after.tree()); now != before {
		t.Errorf("revision %s, want %s", now, before)
	}
}

// The uid in an update must be that of the stored object, and none for a missing object.
func TestUpdateOfAnotherUID(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/x"
	const words = `Operation cannot be fulfilled on roles.rbac.authorization.k8s.io "x": StorageError: invalid object, Code: 4, Key: KEY, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: u, UID in object meta: `
	s.put(path, `{"metadata":{"name":"x","uid":"u"}}`).message(409, strings.Replace(words, "KEY", "/registry/roles/default/x", 1))
	s.put(path+"?dryRun=All", `{"metadata":{"name":"x","uid":"u"}}`).message(409, strings.Replace(words, "KEY", "/roles/default/x", 1))
}

// A write of the status ignores the rest of the metadata, except a field that no update may
// change.
func TestStatusWithGracePeriod(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	s.post(stableClaims, claim).is(201)
	const patch = `{"metadata":{"deletionGracePeriodSeconds":-1,"labels":{"a":"b"}}}`
	s.merge(stableClaims+"/c/status", patch).is(422, "metadata.deletionGracePeriodSeconds: Invalid value: -1: field is immutable")
	const schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
	s.post(schemas, `{"metadata":{"name":"x"},"spec":{"priorityLevelConfiguration":{"name":"p"}}}`).is(201)
	if body := s.merge(schemas+"/x/status", patch).is(200).body; strings.Contains(body, "deletionGracePeriodSeconds") {
		t.Error(body)
	}
}

// A message quotes a strategic merge patch after the merge, and the type of a value as the client
// sent it.
func TestStrategicMessages(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const path, strategic = namespaced + "configmaps/x", "application/strategic-merge-patch+json"
	s.post(namespaced+"configmaps", `{"metadata":{"name":"x"}}`).is(201)
	s.do("PATCH", path, strategic, `{"data":{"a":{}},"metadata":{"$retainKeys":[1]}}`).is(422, `Invalid value: \"map[data:map[a:map[]] metadata:map[]]\": unrecognized type: string`)
	s.do("PATCH", path, strategic, `{"data":{"a":1.0}}`).is(422, `unrecognized type: string`)
	s.do("PATCH", path, strategic, `{"data":{"a":1}}`).is(422, `cannot convert int64 to string`)
}

// The apiVersion of an object without a Go type must be a string.
func TestNullVersion(t *testing.T) {
	newServer(t).post(leads, `{"apiVersion":null,"kind":"Lead"}`).message(400,
		`Lead in version "" cannot be handled as a Lead: .apiVersion accessor error: <nil> is of the type <nil>, expected string`)
}

// A patch may remove the apiVersion, or leave only the group of the kind; then the kind is looked up in the internal
// version. Another group needs a version.
func TestPatchedWithoutVersion(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	s.post(budgets, `{"metadata":{"name":"x"}}`).is(201)
	for _, version := range []string{`null`, `""`, `"/"`, `"policy/"`} {
		s.merge(budgets+"/x", `{"apiVersion":`+version+`,"kind":"two"}`).is(422,
			`no kind \"two\" is registered for the internal version of group \"policy\" in scheme`)
	}
	s.merge(budgets+"/x", `{"apiVersion":"v1/"}`).is(422, `: Object 'apiVersion' is missing in '{\"apiVersion\":\"v1/\",`)
}

// Until the kind is compared, a message names the kind in the object.
func TestClaimedKind(t *testing.T) {
	newServer(t).post(leads, `{"apiVersion":"test.example.com/v1","kind":"two","metadata":{"labels":{"a":[]}}}`).message(400,
		`two in version "v1" cannot be handled as a Lead: json: cannot unmarshal array into Go struct field ObjectMeta.labels of type string`)
}

// A list of one name never reads an old revision, not even with a limit.
func TestListOfOneNameAtRevision(t *testing.T) {
	s := newServer(t)
	s.make("a", "b")
	if got := s.get(leads + "?resourceVersion=1&limit=1&fieldSelector=metadata.name%3Db").names(); got != "b" {
		t.Errorf("listed %q", got)
	}
}

// Kubernetes validates the metadata of a new Event of core/v1, and of a new PodDisruptionBudget, after the rest.
func TestMetadataIsValidatedLast(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const events, budgets = "/api/v1/namespaces/default/events", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	const metadata, wrong = `{"metadata":{"name":"a","labels":{"a":"-"}}`, `metadata.labels: Invalid value: "-": `
	s.post(events, metadata+`,"involvedObject":{"namespace":"x"}}`).message(422,
		`Event "a" is invalid: involvedObject.namespace: Invalid value: "x": does not match event.namespace`)
	s.post(events, metadata+`,"involvedObject":{}}`).is(422, strings.ReplaceAll(wrong, `"`, `\"`))
	s.post(budgets, metadata+`,"spec":{"minAvailable":-1}}`).message(422,
		`PodDisruptionBudget.policy "a" is invalid: spec.minAvailable: Invalid value: -1: must be greater than or equal to 0`)
	s.post(budgets, metadata+`}`).is(422, strings.ReplaceAll(wrong, `"`, `\"`))
}

// The target of a Binding is checked before its name.
func TestBindingWithoutName(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const bindings = "/api/v1/namespaces/default/bindings"
	s.post(bindings, `{}`).message(500, "target.name: Required value")
	s.post(bindings, `{"target":{"name":"a"}}`).message(400, "Name parameter required.")
}

// A deletionTimestamp of the zero time is a change of an immutable field for a built-in kind. For a custom resource, it is
// dropped. A create drops it in both cases.
func TestZeroDeletionTimestamp(t *testing.T) {
	const zero = `"deletionTimestamp":"0001-01-01T00:00:00Z"`
	s := newServerOf(t, builtin.Definitions()...)
	s.post(namespaced+"configmaps", `{"metadata":{"name":"x",`+zero+`}}`).is(201)
	s.put(namespaced+"configmaps/x", `{"metadata":{"name":"x","deletionTimestamp":null}}`).is(200)
	for _, got := range []answer{
		s.put(namespaced+"configmaps/x", `{"metadata":{"name":"x",`+zero+`}}`),
		s.merge(namespaced+"configmaps/x", `{"metadata":{`+zero+`}}`),
	} {
		got.message(422, `ConfigMap "x" is invalid: metadata.deletionTimestamp: Invalid value: null: field is immutable`)
	}
	s = newServer(t)
	s.make("a")
	s.merge(leads+"/a", `{"metadata":{`+zero+`}}`).is(200)
	if got := s.get(leads + "/a").is(200).body; strings.Contains(got, "deletionTimestamp\":") {
		t.Errorf("stored as %s", got)
	}
}
