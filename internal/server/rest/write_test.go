package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

func TestCreate(t *testing.T) {
	s := newServer(t)
	created := s.post(leads, named("a", `,"spec":{"a":"x","unknown":1}`)).is(201).tree()
	if object.Generation(created) != 1 || object.UID(created) == "" || object.ResourceVersion(created) == "" ||
		object.Namespace(created) != "default" || object.MetaString(created, "creationTimestamp") == "" {
		t.Errorf("metadata %v", created["metadata"])
	}
	if spec := fmt.Sprint(created["spec"]); spec != "map[a:x]" {
		t.Errorf("spec %s, want it pruned", spec)
	}
	if got := s.get(leads + "/a").is(200); !object.Equal(got.tree(), created) {
		t.Errorf("read %s\ncreated %v", got.body, created)
	}
	s.post(leads, named("a")).message(409, `leads.test.example.com "a" already exists`)
	generated := s.post(leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"generateName":"g-"}}`).is(201).tree()
	if name := object.Name(generated); !strings.HasPrefix(name, "g-") || len(name) != len("g-")+5 {
		t.Errorf("generated name %q", name)
	}
	// With a name and a generateName, a conflict is about the name, and the message suggests a
	// retry.
	taken := s.post(leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","generateName":"g-"}}`).message(409,
		`leads.test.example.com "a" already exists, the server was not able to generate a unique name for the object`)
	if taken.is(409, `"retryAfterSeconds":1`); taken.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", taken.header.Get("Retry-After"))
	}
}

// A cluster-scoped object with a namespace is not rejected.
func TestCreateWithoutNamespace(t *testing.T) {
	s := newServer(t)
	created := s.post(hubs, `{"apiVersion":"test.example.com/v1","kind":"Hub","metadata":{"name":"a","namespace":"default"}}`).is(201).tree()
	if n := object.Namespace(created); n != "" {
		t.Errorf("namespace %q", n)
	}
}

// A terminating kind accepts updates but no new objects.
func TestCreateWhileTerminating(t *testing.T) {
	s := newServer(t)
	s.make("old")
	going := *lead()
	going.Terminating = true
	s.catalog.Swap(resource.NewSet([]*resource.Definition{resource.New(going)}))
	s.post(leads, named("new")).message(403,
		`leads.test.example.com "new" is forbidden: create not allowed while custom resource definition is terminating`)
	s.do("PATCH", leads+"/new?fieldManager=m", "application/apply-patch+yaml", named("new")).is(403)
	s.merge(leads+"/old", `{"spec":{"a":"x"}}`).is(200)
}

// Invalid bodies are rejected in Kubernetes' words, and nothing is stored.
func TestCreateRefused(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		path, body string
		code       int
		message    string
	}{
		{leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{}}`, 422,
			`Lead.test.example.com "" is invalid: metadata.name: Required value: name or generateName is required`},
		{leads, `{"apiVersion":"test.example.com/v2","kind":"Lead","metadata":{"name":"b"}}`, 400,
			`the API version in the data (test.example.com/v2) does not match the expected API version (test.example.com/v1)`},
		{leads, `{"apiVersion":"test.example.com/v2","kind":"Lead","metadata":{"name":"b","labels":{"x":1}}}`, 400,
			`Lead in version "v2" cannot be handled as a Lead: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`},
		{leads + "?fieldValidation=Strict", `{"apiVersion":"test.example.com/v2","kind":"Lead","metadata":{"name":"b","bogus":1},"spec":{"a":"x"},"a":1}`, 400,
			`Lead in version "v2" cannot be handled as a Lead: strict decoding error: unknown field "a", unknown field "spec", unknown field "metadata.bogus"`},
		{leads + "?fieldValidation=Strict", `{"apiVersion":"other.example.com/v1","kind":"Lead","metadata":{"name":"b"},"spec":{"a":"x"}}`, 400,
			`the API version in the data (other.example.com/v1) does not match the expected API version (test.example.com/v1)`},
		{leads, `{"apiVersion":"test.example.com/v1","kind":"Leed","metadata":{"name":"b"}}`, 422,
			`Leed.test.example.com "b" is invalid: kind: Invalid value: "Leed": must be Lead`},
		{leads + "?fieldValidation=Strict", `{"apiVersion":"test.example.com/v1","kind":"LeadList","metadata":{"name":"b"},"items":[]}`, 422,
			`LeadList.test.example.com "b" is invalid: kind: Invalid value: "LeadList": must be Lead`},
		{leads + "?fieldValidation=Strict", `{"apiVersion":"test.example.com/v1","kind":"LeadList","metadata":{"name":"b","bogus":1},"items":[]}`, 400,
			`Lead in version "v1" cannot be handled as a Lead: strict decoding error: unknown field "metadata.bogus"`},
		{leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"b","namespace":"other"}}`, 400,
			`the namespace of the provided object does not match the namespace sent on the request`},
		{leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"b","labels":{"x":1}}}`, 400,
			`Lead in version "v1" cannot be handled as a Lead: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`},
		{leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":true}`, 400,
			`Lead in version "v1" cannot be handled as a Lead: json: cannot unmarshal bool into Go value of type v1.ObjectMeta`},
		{leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"b","resourceVersion":"12"}}`, 400,
			`resourceVersion should not be set on objects to be created`},
		{leads, `{`, 400,
			`the object provided is unrecognized (must be of type Lead): couldn't get version/kind; json parse error: unexpected end of JSON input ({)`},
		{leads + "?fieldValidation=Strict", `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"b","bogus":1},"spec":{"a":"x","a":"y","zz":1}}`, 400,
			`Lead in version "v1" cannot be handled as a Lead: strict decoding error: duplicate field "spec.a", unknown field "metadata.bogus", unknown field "spec.zz"`},
		{leads + "?fieldValidation=Foo", named("b"), 422,
			`CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo": supported values: "", "Ignore", "Strict", "Warn"`},
		{leads + "?dryRun=Some", named("b"), 422,
			`CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`},
	} {
		s.post(tt.path, tt.body).message(tt.code, tt.message)
	}
	if names := s.get(all).is(200).names(); names != "" {
		t.Errorf("stored %s", names)
	}
	s.do("POST", leads, "text/plain", "x").message(415,
		"the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf")
	s.post(leads, `{"x":"`+strings.Repeat("x", 3<<20)+`"}`).message(413, "Request entity too large: limit is 3145728")
}

// Unknown and duplicate fields are reported as warnings, unless fieldValidation is Ignore.
func TestFieldValidation(t *testing.T) {
	s := newServer(t)
	body := `,"spec":{"a":"x","a":"y","zz":1}`
	a := s.post(leads, named("warned", body)).is(201)
	if got := fmt.Sprint(a.header["Warning"]); got != `[299 - "duplicate field \"spec.a\"" 299 - "unknown field \"spec.zz\""]` {
		t.Errorf("warnings %s", got)
	}
	a = s.post(leads+"?fieldValidation=Ignore", named("ignored", body)).is(201)
	if got := a.header["Warning"]; got != nil {
		t.Errorf("warnings %s", got)
	}
	a = s.post(leads, object1("LeadList", "list", `,"items":[]`)).is(422)
	if got := a.header["Warning"]; got != nil {
		t.Errorf("warnings about fields of another kind: %s", got)
	}
	a = s.merge(leads+"/warned", `{"spec":{"zz":1}}`).is(200)
	if got := fmt.Sprint(a.header["Warning"]); got != `[299 - "unknown field \"spec.zz\""]` {
		t.Errorf("warnings %s", got)
	}
	s.merge(leads+"/warned?fieldValidation=Strict", `{"spec":{"zz":1}}`).is(422, `: strict decoding error: unknown field \"spec.zz\"`, `"field":"patch"`)
}

// A rejected write has the warnings too, for they may name the cause. A request whose body does
// not decode to an object has none.
func TestWarningsOfWhatIsRefused(t *testing.T) {
	s := newServer(t)
	s.post(leads, named("a", `,"spec":{"a":"x"}`)).is(201)
	const (
		json    = "application/json"
		wrong   = `,"spec":{"a":1,"zz":1,"n":2,"n":3}`
		unknown = `299 - "unknown field \"spec.zz\""`
		both    = `299 - "duplicate field \"spec.n\"" ` + unknown
	)
	seen := func(name, more string) string {
		return `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"` + name + `","resourceVersion":"1"}` + more + `}`
	}
	for _, tt := range []struct {
		name, method, path, contentType, body string
		code                                  int
		warnings                              string
	}{
		{"create what is wrong", "POST", leads, json, named("b", wrong), 422, both},
		{"create what is wrong, by one who does not want to know", "POST", leads + "?fieldValidation=Ignore", json, named("b", wrong), 422, ""},
		{"create what is wrong, strictly", "POST", leads + "?fieldValidation=Strict", json, named("b", wrong), 400, ""},
		{"create what is there", "POST", leads, json, named("a", `,"spec":{"zz":1}`), 409, unknown},
		{"replace an older state", "PUT", leads + "/a", json, seen("a", wrong), 409, both},
		{"replace what is not there", "PUT", leads + "/b", json, seen("b", wrong), 404, both},
		{"replace another", "PUT", leads + "/a", json, seen("b", `,"spec":{"zz":1}`), 400, unknown},
		{"patch wrongly", "PATCH", leads + "/a", mergePatch, `{"spec":{"a":1,"zz":1,"n":2,"n":3}}`, 422, both},
		{"patch wrongly, by operations", "PATCH", leads + "/a", jsonPatch, `[{"op":"add","path":"/spec/zz","value":1},{"op":"add","path":"/spec/a","value":1}]`, 422, unknown},
		{"patch what is not there", "PATCH", leads + "/b", mergePatch, `{"spec":{"zz":1}}`, 404, ""},
	} {
		a := s.do(tt.method, tt.path, tt.contentType, tt.body)
		if a.code != tt.code {
			t.Errorf("%s: %d, want %d: %s", tt.name, a.code, tt.code, a.body)
		}
		if got := strings.Join(a.header["Warning"], " "); got != tt.warnings {
			t.Errorf("%s: warnings %s, want %s", tt.name, got, tt.warnings)
		}
	}
}

func TestDryRun(t *testing.T) {
	s := newServer(t)
	dry := s.post(leads+"?dryRun=All", named("a")).is(201).tree()
	if object.ResourceVersion(dry) != "" || object.UID(dry) == "" {
		t.Errorf("metadata %v", dry["metadata"])
	}
	s.get(leads + "/a").is(404)
	before := s.post(leads, named("a", `,"spec":{"a":"x"}`)).is(201).tree()
	s.post(leads+"?dryRun=All", named("a")).is(409)
	s.merge(leads+"/a?dryRun=All", `{"spec":{"a":"y"}}`).is(200, `"a":"y"`)
	s.delete(leads+"/a?dryRun=All", "").is(200)
	if now := s.get(leads + "/a").is(200).tree(); !object.Equal(now, before) {
		t.Errorf("now %v", now)
	}
	applied := s.do("PATCH", leads+"/b?dryRun=All&fieldManager=m", "application/apply-patch+yaml",
		`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"b","resourceVersion":"7"}}`)
	if got := object.ResourceVersion(applied.is(201).tree()); got != "7" {
		t.Errorf("resourceVersion %q of an apply that creates nothing", got)
	}
}

// A PUT needs the current resourceVersion, and the name of the path.
func TestUpdate(t *testing.T) {
	s := newServer(t)
	old := s.post(leads, named("a", `,"spec":{"a":"x"}`)).is(201).tree()
	s.put(leads+"/a", named("a")).message(422,
		`leads.test.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
	s.put(leads+"/a", named("b")).message(400, `the name of the object (b) does not match the name on the URL (a)`)
	s.put(leads+"/nope", named("nope")).message(404, `leads.test.example.com "nope" not found`)
	// A wrong name is reported whether the object exists or not.
	const elsewhere = `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"b","namespace":"other"}}`
	for _, path := range []string{leads + "/nope", leads + "/nope/status", leads + "/a", leads + "/a/status"} {
		s.put(path, named("b")).is(400, `the name of the object (b) does not match the name on the URL (`)
		s.put(path, named("")).is(400, `name must be provided`)
		s.put(path, elsewhere).message(400, `the namespace of the provided object does not match the namespace sent on the request`)
	}
	changed := object.CloneTree(old)
	changed["spec"] = object.Tree{"a": "y"}
	new := s.put(leads+"/a", string(object.AppendJSON(nil, changed))).is(200).tree()
	if object.Generation(new) != 2 || object.UID(new) != object.UID(old) || object.ResourceVersion(new) == object.ResourceVersion(old) {
		t.Errorf("metadata %v", new["metadata"])
	}
	s.put(leads+"/a", string(object.AppendJSON(nil, changed))).message(409,
		`Operation cannot be fulfilled on leads.test.example.com "a": the object has been modified; please apply your changes to the latest version and try again`)
	changed = object.CloneTree(new)
	object.SetMetaString(changed, "uid", "other")
	s.put(leads+"/a", string(object.AppendJSON(nil, changed))).message(409,
		`Operation cannot be fulfilled on leads.test.example.com "a": StorageError: invalid object, Code: 4, Key: /registry/test.example.com/leads/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: `+object.UID(old))
}

// A resourceVersion that is not a number is a client error, whether the object exists or not.
// Kubernetes reports an internal error.
func TestRevisionThatIsNone(t *testing.T) {
	s := newServer(t)
	s.post(leads, named("a")).is(201)
	for _, revision := range []string{"x", "-1", "0x1", "1.0", "18446744073709551616"} {
		metadata := `{"name":"a","resourceVersion":"` + revision + `"}`
		whole := `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":` + metadata + `}`
		s.put(leads+"/a", whole).is(400, "strconv.ParseUint")
		s.put(leads+"/a/status", whole).is(400, "strconv.ParseUint")
		s.merge(leads+"/a", `{"metadata":`+metadata+`}`).is(400, "strconv.ParseUint")
		s.do("PATCH", leads+"/a", "application/json-patch+json", `[{"op":"add","path":"/metadata/resourceVersion","value":"`+revision+`"}]`).is(400, "strconv.ParseUint")
		for _, name := range []string{"a", "new"} {
			s.do("PATCH", leads+"/"+name+"?fieldManager=m", "application/apply-patch+yaml", strings.Replace(whole, `"a"`, `"`+name+`"`, 1)).is(400, "strconv.ParseUint")
		}
		s.get(leads + "/new").is(404)
		// A create does not check the resourceVersion unless it is a number.
		s.post(leads, strings.Replace(whole, `"a"`, `"new"`, 1)).is(201)
		s.delete(leads+"/new", "").is(200)
	}
}

// A dry run of a create answers with the resourceVersion of the request, as Kubernetes does.
func TestDryRunWithRevision(t *testing.T) {
	s := newServer(t)
	for _, revision := range []string{"12", "0", "x"} {
		body := `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","resourceVersion":"` + revision + `"}}`
		if got := object.ResourceVersion(s.post(leads+"?dryRun=All", body).is(201).tree()); got != revision {
			t.Errorf("resourceVersion %q comes back as %q", revision, got)
		}
		s.get(leads + "/a").is(404)
	}
	s.post(leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","resourceVersion":"12"}}`).
		is(400, "resourceVersion should not be set on objects to be created")
	s.get(leads + "/a").is(404)
}

// An error in metadata is listed once. Kubernetes repeats it for each layer that validates the
// metadata of a custom resource.
func TestCausesOnce(t *testing.T) {
	s := newTypedServer(t)
	const wrong = `{"metadata":{"labels":{"a b":"c d"},"annotations":{"a b":""},"ownerReferences":[{"apiVersion":"v1","kind":"X"}],` +
		`"finalizers":["x.io/y","new.io/f"],"deletionGracePeriodSeconds":9,"managedFields":[]}}`
	for path, sent := range map[string]string{
		leads:      `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","finalizers":["x.io/y"]}}`,
		configMaps: `{"metadata":{"name":"a","finalizers":["x.io/y"]}}`,
	} {
		s.post(path, sent).is(201)
		s.delete(path+"/a", "").is(200)
		status := s.merge(path+"/a", wrong).is(422).tree()
		details, _ := status["details"].(object.Tree)
		causes, _ := details["causes"].([]any)
		told := map[string]bool{}
		for _, c := range causes {
			if cause := string(object.AppendJSON(nil, c)); told[cause] {
				t.Errorf("%s: twice: %s", path, cause)
			} else {
				told[cause] = true
			}
		}
		if len(told) != 7 { // two for a label, one for an annotation, two for an owner, one for each other field
			t.Errorf("%s: %d causes: %v", path, len(told), told)
		}
	}
}

// "A no-op update writes nothing and returns the same resourceVersion."
func TestNoChange(t *testing.T) {
	s := newServer(t)
	old := s.post(leads, named("a", `,"spec":{"a":"x"}`)).is(201).tree()
	for _, a := range []answer{
		s.merge(leads+"/a", `{"spec":{"a":"x"}}`),
		s.merge(leads+"/a", `{}`),
		s.put(leads+"/a", string(object.AppendJSON(nil, old))),
		s.do("PATCH", leads+"/a", "application/json-patch+json", `[{"op":"replace","path":"/spec/a","value":"x"}]`),
	} {
		if now := a.is(200).tree(); !object.Equal(now, old) {
			t.Errorf("now %v\nwas %v", now, old)
		}
	}
}

func TestPatch(t *testing.T) {
	s := newServer(t)
	s.post(leads, named("a", `,"spec":{"a":"x","n":1}`)).is(201)
	s.merge(leads+"/a", `{"spec":{"a":null}}`).is(200, `"spec":{"n":1}`)
	s.do("PATCH", leads+"/a", "application/json-patch+json", `[{"op":"add","path":"/spec/a","value":"y"}]`).is(200, `"spec":{"a":"y","n":1}`)
	s.do("PATCH", leads+"/a", "application/strategic-merge-patch+json", `{}`).is(415)
	s.merge(leads+"/nope", `{}`).message(404, `leads.test.example.com "nope" not found`)
	s.merge(leads+"/a", `{"metadata":{"name":"b"}}`).message(400, `the name of the object (b) does not match the name on the URL (a)`)
	s.merge(leads+"/a", `{"metadata":{"uid":"b"}}`).is(422, `metadata.uid`, `field is immutable`)
	s.merge(leads+"/a", `{"metadata":{"resourceVersion":"1"}}`).is(409)
	s.merge(leads+"/a", `{"apiVersion":"x/v1"}`).message(422, `Lead.x "a" is invalid: apiVersion: Invalid value: "x/v1": must be test.example.com/v1`)
	// Clients cannot change the fields that the server sets.
	before := s.get(leads + "/a").tree()
	after := s.merge(leads+"/a", `{"metadata":{"generation":77,"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z"}}`)
	after.is(422, "deletionTimestamp")
	s.merge(leads+"/a", `{"metadata":{"generation":77,"creationTimestamp":"2001-01-01T00:00:00Z","selfLink":"x"}}`).is(200)
	if now := s.get(leads + "/a").tree(); !object.Equal(now, before) {
		t.Errorf("now %v\nwas %v", now["metadata"], before["metadata"])
	}
}

// A write of the spec keeps the status, and a write of the status keeps the spec; only the spec
// counts in generation.
func TestStatusSubresource(t *testing.T) {
	s := newServer(t)
	created := s.post(leads, named("a", `,"spec":{"a":"x"},"status":{"a":"no"}`)).is(201).tree()
	if created["status"] != nil {
		t.Errorf("status %v", created["status"])
	}
	s.merge(leads+"/a/status", `{"spec":{"a":"no"},"status":{"a":"yes"}}`).is(200, `"spec":{"a":"x"}`, `"status":{"a":"yes"}`, `"generation":1`)
	s.merge(leads+"/a", `{"spec":{"a":"z"},"status":{"a":"no"}}`).is(200, `"spec":{"a":"z"}`, `"status":{"a":"yes"}`, `"generation":2`)
	s.get(leads+"/a/status").is(200, `"status":{"a":"yes"}`)
	s.get(leads + "/a/scale").is(404)
	s.post(leads+"/a/status", `{}`).is(405)
}

func TestDelete(t *testing.T) {
	s := newServer(t)
	uid := object.UID(s.post(leads, named("a")).is(201).tree())
	s.delete(leads+"/nope", "").message(404, `leads.test.example.com "nope" not found`)
	s.delete(leads+"/a", `{"preconditions":{"uid":"x"}}`).message(409,
		`Operation cannot be fulfilled on Lead.test.example.com "a": the UID in the precondition (x) does not match the UID in record (`+uid+`). The object might have been deleted and then recreated`)
	s.delete(leads+"/a", `{"propagationPolicy":"Foo"}`).is(422)
	got := s.delete(leads+"/a", `{"preconditions":{"uid":"`+uid+`"}}`).is(200).body
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","group":"test.example.com","kind":"leads","uid":"` + uid + `"}}`
	if strings.TrimSpace(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	s.get(leads + "/a").is(404)
}

// A terminating object waits for its finalizers: it may lose some but gains none, and goes with
// the last one.
func TestFinalizers(t *testing.T) {
	s := newServer(t)
	s.post(leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","finalizers":["a.b/c"]}}`).is(201)
	marked := s.delete(leads+"/a", "").is(200, `"deletionGracePeriodSeconds":0`, `"deletionTimestamp":"`, `"generation":2`).tree()
	if again := s.delete(leads+"/a", "").is(200).tree(); !object.Equal(again, marked) {
		t.Errorf("deleted again: %v", again)
	}
	s.merge(leads+"/a", `{"metadata":{"finalizers":["x.y/z"]}}`).is(422, "no new finalizers can be added if the object is being deleted")
	s.merge(leads+"/a", `{"metadata":{"finalizers":null}}`).is(200)
	s.get(leads + "/a").is(404)
}

func TestDeleteCollection(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		s.post(leads, fmt.Sprintf(`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":%q,"labels":{"is":%q}}}`, name, name)).is(201)
	}
	was := object.ResourceVersion(s.post(leads, object1("Lead", "later", "")).is(201).tree())
	s.delete(leads+"/later", "").is(200)
	s.post(leads, object1("Lead", "last", "")).is(201)
	// deletecollection at a revision deletes the objects of that revision: later ones stay, and
	// missing ones are no error.
	const dry = `{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}`
	if names := s.delete(leads+"?resourceVersion="+was, dry).is(200).names(); names != "a b c later" {
		t.Errorf("would have deleted %s", names)
	}
	s.delete(leads+"/last", "").is(200)
	if names := s.delete(leads+"?labelSelector=is+in+(a,b)", "").is(200, `"kind":"LeadList"`).names(); names != "a b" {
		t.Errorf("deleted %s", names)
	}
	if names := s.get(leads).names(); names != "c" {
		t.Errorf("left %s", names)
	}
}

// A patch of a missing object must be JSON; its content is not checked.
func TestPatchOfNothing(t *testing.T) {
	s := newServer(t)
	s.make("a")
	for _, patchType := range []string{mergePatch, jsonPatch} {
		s.do("PATCH", leads+"/none", patchType, `{`).message(400, "invalid JSON patch")
		s.do("PATCH", leads+"/none", patchType, `"x"`).message(404, `leads.test.example.com "none" not found`)
		s.do("PATCH", leads+"/a", patchType, `"x"`).is(400)
	}
	s.merge(leads+"/a", `{"kind":null}`).is(422, `"field":"patch"`, "Object 'Kind' is missing in '{")
}

// A patch that breaks a custom object has the errors of decoding. For a patch that changes the
// kind, the answer also has all other errors of the object.
func TestPatchedKindOfCustomResource(t *testing.T) {
	s := newServer(t)
	s.make("a")
	for patch, want := range map[string]string{
		`{"kind":1}`:                              `couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string`,
		`{"apiVersion":[]}`:                       `couldn't get version/kind; json parse error: json: cannot unmarshal array into Go struct field .apiVersion of type string`,
		`{"apiVersion":"a/b/c"}`:                  `unexpected GroupVersion string: a/b/c`,
		`{"kind":"","spec":{"zz":1}}`:             `Object 'Kind' is missing in '{`,
		`{"kind":"X","metadata":{"uid":"other"}}`: `[metadata.uid: Invalid value: \"other\": field is immutable, kind: Invalid value: \"X\": must be Lead]`,
	} {
		if a := s.merge(leads+"/a", patch).is(422, want); a.header["Warning"] != nil {
			t.Errorf("%s: warnings %s", patch, a.header["Warning"])
		}
	}
	s.do("PATCH", leads+"/a", jsonPatch, `[{"op":"replace","path":"/apiVersion","value":null}]`).
		is(422, `.apiVersion accessor error: \u003cnil\u003e is of the type \u003cnil\u003e, expected string`)
}

// The name of an unknown field is escaped only where JSON is decoded into a Go type.
func TestUnknownFieldsWithQuotes(t *testing.T) {
	s := newTypedServer(t)
	s.post(leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a"}}`).is(201)
	s.post(configMaps, `{"metadata":{"name":"a"}}`).is(201)
	const patch = `{"metadata":{"\"\\":1}}`
	for _, tt := range []struct{ path, patchType, want string }{
		{leads, mergePatch, `unknown field "metadata."\"`},
		{configMaps, mergePatch, `unknown field "metadata.\"\\"`},
		{configMaps, "application/strategic-merge-patch+json", `unknown field "metadata."\"`},
	} {
		a := s.do("PATCH", tt.path+"/a?fieldValidation=Strict", tt.patchType, patch).is(422)
		if got, _ := a.tree()["message"].(string); !strings.HasSuffix(got, "strict decoding error: "+tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.path, tt.patchType, got, tt.want)
		}
	}
}

// Options of another kind delete nothing; nor does a request whose answer cannot be shown.
func TestDeleteOptionsOfAnotherKind(t *testing.T) {
	s := newServer(t)
	s.make("a")
	for _, path := range []string{leads + "/a", leads} {
		for _, body := range []string{named("a"), `{"Kind":"Lead"}`, `{"KIND":"Event","apiVersion":"v1"}`} {
			s.delete(path, body).is(400, "no kind ", " is registered for version ")
		}
		s.accept("odd/type", "DELETE", path, "application/json", `{"kind":1}`).is(406)
	}
	s.get(leads + "/a").is(200)
	s.delete(leads+"/a", `{"Kind":"DeleteOptions"}`).is(200)
}
