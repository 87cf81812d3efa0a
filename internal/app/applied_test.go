package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// establishedBy is the entry of managedFields for the status of a definition, which the server sets.
const establishedBy = `kube-apiserver Update status apiextensions.k8s.io/v1 {"f:status":{` +
	`"f:acceptedNames":{"f:kind":{},"f:listKind":{},"f:plural":{},"f:singular":{}},"f:conditions":{` +
	`"k:{\"type\":\"Established\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}},` +
	`"k:{\"type\":\"NamesAccepted\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`

// The first apply makes its manager the owner of the applied fields, and no other manager owns any.
// Empty fields that the server adds to some kinds have no owner. Fields of an earlier create stay
// with the manager of that create.
func TestAppliedFirst(t *testing.T) {
	c := startConverting(t)
	const in = "/namespaces/default/"
	for path, fields := range map[string]struct{ kind, body, owns string }{
		"/api/v1/namespaces/n":          {`"v1","kind":"Namespace"`, `"spec":{"finalizers":["kubernetes"]}`, `{"f:spec":{"f:finalizers":{}}}`},
		"/api/v1" + in + "configmaps/c": {`"v1","kind":"ConfigMap"`, `"data":{"a":"b"}`, `{"f:data":{"f:a":{}}}`},
		"/api/v1" + in + "secrets/s":    {`"v1","kind":"Secret"`, `"data":{"a":"YQ=="}`, `{"f:data":{"f:a":{}}}`},
		"/api/v1" + in + "services/s":   {`"v1","kind":"Service"`, `"spec":{"type":"ExternalName","externalName":"a.b"}`, `{"f:spec":{"f:externalName":{},"f:type":{}}}`},
		"/api/v1" + in + "events/e": {`"v1","kind":"Event"`, `"involvedObject":{"kind":"A","namespace":"default"},"reason":"r"`,
			`{"f:involvedObject":{},"f:reason":{}}`},
		"/apis/coordination.k8s.io/v1" + in + "leases/l": {`"coordination.k8s.io/v1","kind":"Lease"`, `"spec":{"holderIdentity":"h"}`, `{"f:spec":{"f:holderIdentity":{}}}`},
		"/apis/discovery.k8s.io/v1" + in + "endpointslices/e": {`"discovery.k8s.io/v1","kind":"EndpointSlice"`, `"addressType":"IPv4","endpoints":[]`,
			`{"f:addressType":{},"f:endpoints":{}}`},
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bs.example.com": {`"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"`,
			`"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"bs","kind":"B"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}`,
			`{"f:spec":{"f:group":{},"f:names":{"f:kind":{},"f:plural":{}},"f:scope":{},"f:versions":{}}}`},
	} {
		body := fmt.Sprintf(`{"apiVersion":%s,"metadata":{"name":%q},%s}`, fields.kind, path[strings.LastIndex(path, "/")+1:], fields.body)
		o, _ := c.must("PATCH", path+"?fieldManager=me", body, 201)
		want := fmt.Sprintf("me Apply %s %s", object.APIVersion(o), fields.owns)
		if status, _ := o["status"].(object.Tree); status["conditions"] != nil { // established by the server
			want = establishedBy + "\n" + want
		}
		c.expect(path, owners(o), want)
		// An object without owners is unusual, except for old objects.
		delete(object.Metadata(o), "managedFields")
		object.Metadata(o)["managedFields"] = []any{object.Tree{}}
		o, _ = c.must("PUT", path, string(object.AppendJSON(nil, o)), 200)
		c.expect(path, owners(o), "")
		o, _ = c.must("PATCH", path+"?fieldManager=me", body, 200)
		if got := owners(o); len(got) <= len(fields.owns) {
			t.Errorf("%s: before anyone applied, it was of %s", path, got)
		}
	}
}

// A write of a status affects the status only: if it names another kind, no manager loses a field.
func TestStatusOfAnotherKind(t *testing.T) {
	c := startConverting(t)
	const path = "/apis/example.com/v1beta1/namespaces/default/crontabs"
	made, _ := c.must("POST", path+"?fieldManager=me", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"x"},"spec":{"note":"n"}}`, 201)
	body := fmt.Sprintf(`{"apiVersion":"example.com/v1beta1","kind":"Other","metadata":{"name":"x","resourceVersion":%q,"managedFields":[{}]}}`, object.ResourceVersion(made))
	o, _ := c.must("PUT", path+"/x/status?fieldManager=other", body, 200)
	if got, want := owners(o), owners(made); got != want || object.Kind(o) != "CronTab" {
		t.Errorf("%s of %s, want %s", object.Kind(o), got, want)
	}
}
