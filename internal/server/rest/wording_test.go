package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// The messages of Kubernetes for requests that fail.
func TestRefusals(t *testing.T) {
	const (
		mergePatch = "application/merge-patch+json"
		jsonPatch  = "application/json-patch+json"
		applyPatch = "application/apply-patch+yaml"
	)
	s := newServer(t)
	s.post(leads, named("a")).is(201)
	for _, tt := range []struct {
		method, path, contentType, body string
		code                            int
		message                         string
	}{
		{"GET", leads + "/a?export=true", "", "", 400, "the export parameter, deprecated since v1.14, is no longer supported"},
		{"GET", leads + "/a?export", "", "", 400, "the export parameter, deprecated since v1.14, is no longer supported"},
		{"PUT", leads + "/a", "application/json", named(""), 400,
			"the name of the object (a based on URL) was undeterminable: name must be provided"},
		{"PATCH", leads + "/a", mergePatch, `null`, 400, "Invalid JSON Patch"},
		{"PATCH", leads + "/a", "application/apply-patch+cbor", `{}`, 415, "the body of the request was in an unknown format - accepted media types include: " +
			"application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"},
		{"PATCH", leads + "/b?fieldManager=m", applyPatch, named("b", `,"metadata":{"uid":"x"}`), 409,
			`Operation cannot be fulfilled on leads.test.example.com "b": uid mismatch: the provided object specified uid x, and no existing object was found`},
		{"DELETE", leads + "?dryRun=Some", "", "", 422, `DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`},
	} {
		s.do(tt.method, tt.path, tt.contentType, tt.body).message(tt.code, tt.message)
	}
	// The fields of a JSON patch are checked too, although they have no effect.
	const patch = `[{"op":"add","path":"/metadata/labels","value":{},"extra":1}]`
	a := s.do("PATCH", leads+"/a", jsonPatch, patch).is(200)
	if got := fmt.Sprint(a.header["Warning"]); got != `[299 - "json patch unknown field \"[0].extra\""]` {
		t.Errorf("warnings %s", got)
	}
	s.do("PATCH", leads+"/a?fieldValidation=Strict", jsonPatch, patch).is(422, `strict decoding error: json patch unknown field \"[0].extra\"`)
}

// An object of another version is refused. Its metadata has the same fields.
func TestWarningsOfAnotherVersion(t *testing.T) {
	s := newServer(t)
	for query, want := range map[string]string{"": `[299 - "unknown field \"metadata.b\""]`, "?fieldValidation=Ignore": "[]"} {
		a := s.post(leads+query, `{"kind":"Lead","metadata":{"b":{}},"zz":1}`).is(400, "the API version in the data () does not match")
		if got := fmt.Sprint(a.header["Warning"]); got != want {
			t.Errorf("%q: warnings %s, want %s", query, got, want)
		}
	}
}

// With fieldValidation=Ignore, a value of a wrong type in an operation is an error only if the
// operation uses it.
func TestOperationsWithoutText(t *testing.T) {
	const jsonPatch, ignoring = "application/json-patch+json", leads + "/a?fieldValidation=Ignore"
	s := newServer(t)
	s.post(leads, named("a")).is(201)
	const from = `[{"op":"add","path":"/metadata/annotations","value":{"a":"x"},"from":1}]`
	s.do("PATCH", leads+"/a", jsonPatch, from).is(400, "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.from of type string")
	s.do("PATCH", ignoring, jsonPatch, from).is(200, `"a":"x"`)
	s.do("PATCH", ignoring, jsonPatch, `[{"op":"remove","path":1}]`).is(422, "the server rejected our request due to an error in our request")
	s.do("PATCH", ignoring, jsonPatch, `[{"op":7,"path":"/spec/a","value":"y"}]`).is(422, "the server rejected our request due to an error in our request")
	s.do("PATCH", ignoring, jsonPatch, `[1]`).message(400, "json: cannot unmarshal number into Go value of type jsonpatch.Operation")
	s.do("PATCH", leads+"/a", jsonPatch, `{}`).message(400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp")
	s.do("PATCH", leads+"/a?fieldManager=m", applyPatch, `a: {null: c}`).message(400, `error encoding patch: unsupported map key of type: %!s(<nil>), key: <nil>, value: "c"`)
	s.do("PATCH", leads+"/a?fieldManager=m", applyPatch, `{null: c}`).message(400, `error decoding patch: error converting YAML to JSON: unsupported map key of type: %!s(<nil>), key: <nil>, value: "c"`)
	s.do("PATCH", leads+"/a?fieldManager=m", applyPatch, ` {"a" 1}`).is(400, "error decoding patch: error converting YAML to JSON: yaml: did not find expected ',' or '}'")
	s.do("PATCH", leads+"/a?fieldManager=m", applyPatch, `a: [`).is(400, "error encoding patch: yaml: ")
}

// A terminating object blocks its name, has a fixed grace period, and the answer tells a client
// with deprecated options that it waits.
func TestWaitingObject(t *testing.T) {
	s := newServer(t)
	s.post(leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","finalizers":["x.io/y"]}}`).is(201)
	s.delete(leads+"/a?orphanDependents=false", "").is(202, `"deletionTimestamp"`)
	s.post(leads, named("a")).message(409, `object is being deleted: leads.test.example.com "a" already exists`)
	s.merge(leads+"/a", `{"metadata":{"deletionGracePeriodSeconds":9}}`).is(422, "metadata.deletionGracePeriodSeconds: Invalid value: 9: field is immutable")
}

// A duplicate owner is stored once.
func TestOwnersOnce(t *testing.T) {
	s := newServer(t)
	const owner = `{"apiVersion":"v1","kind":"Secret","name":"o","uid":"u"}`
	const owners = `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","ownerReferences":[` + owner + "," + owner + `]}}`
	check := func(a answer, when string) {
		t.Helper()
		refs, _ := object.Metadata(a.tree())["ownerReferences"].([]any)
		warning := fmt.Sprint(a.header["Warning"])
		if len(refs) != 1 || !strings.Contains(warning, ".metadata.ownerReferences contains duplicate entries"+when+"; API server dedups") ||
			!strings.Contains(warning, "duplicate UID(s) observed: u") {
			t.Errorf("owners %v, warning %s", refs, warning)
		}
	}
	a := s.post(leads, owners).is(201)
	check(a, "")
	check(s.put(leads+"/a", strings.Replace(a.body, "["+owner, "["+owner+","+owner, 1)).is(200), "")
	missing := s.put(leads+"/none", strings.Replace(owners, `"name":"a"`, `"name":"none","resourceVersion":"1"`, 1)).is(404)
	if !strings.Contains(fmt.Sprint(missing.header["Warning"]), "duplicate UID(s) observed: u") {
		t.Errorf("of an object that is not there: warning %s", missing.header["Warning"])
	}
	check(s.merge(leads+"/a", `{"metadata":{"ownerReferences":[`+owner+","+owner+`]}}`).is(200), " after mutating admission happens")
}

// Fields of a new object that the server drops have no manager.
func TestSystemMetadataHasNoManager(t *testing.T) {
	s := newServer(t)
	a := s.post(leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","uid":"mine","deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":5}}`).is(201)
	if strings.Contains(a.body, "f:deletion") || strings.Contains(a.body, "mine") {
		t.Error(a.body)
	}
}
