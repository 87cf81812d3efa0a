package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/schematest"
)

func (s *server) apply(path, manager, body string, more ...string) answer {
	s.t.Helper()
	return s.do("PATCH", path+"?fieldManager="+manager+strings.Join(more, ""), "application/apply-patch+yaml", body)
}

// owners returns the field managers as text: manager/operation{/subresource} and the outermost
// fields of spec and status. managedFields is sorted by time, to the second, which these tests
// ignore.
func owners(t object.Tree) string {
	var out []string
	list, _ := object.Metadata(t)["managedFields"].([]any)
	for _, e := range list {
		entry := e.(object.Tree)
		s := fmt.Sprintf("%v/%v", entry["manager"], entry["operation"])
		if sub, ok := entry["subresource"]; ok {
			s += fmt.Sprintf("/%v", sub)
		}
		s += ":"
		for _, part := range []string{"f:spec", "f:status"} {
			fields, _ := entry["fieldsV1"].(object.Tree)[part].(object.Tree)
			for _, name := range []string{"f:a", "f:n"} {
				if _, ok := fields[name]; ok {
					s += " " + strings.TrimPrefix(part, "f:") + "." + strings.TrimPrefix(name, "f:")
				}
			}
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func (a answer) owned(want string) answer {
	a.t.Helper()
	if got := owners(a.tree()); got != want {
		a.t.Errorf("owners %q, want %q", got, want)
	}
	return a
}

// Two managers disagree about one field; the second must force. A field that its only manager no
// longer applies is removed.
func TestServerSideApply(t *testing.T) {
	s := newServer(t)
	path := leads + "/w"
	s.apply(path, "alice", named("w", `,"spec":{"a":"x","n":3}`)).is(201, `"n":3`, `"generation":1`).owned("alice/Apply: spec.a spec.n")
	before := s.get(path).tree()
	if again := s.apply(path, "alice", named("w", `,"spec":{"a":"x","n":3}`)).is(200).tree(); !object.Equal(again, before) {
		t.Errorf("applying the same again gave %v", again)
	}
	s.apply(path, "bob", named("w", `,"spec":{"n":5}`)).message(409,
		`Apply failed with 1 conflict: conflict with "alice": .spec.n`)
	s.apply(path, "bob", named("w", `,"spec":{"n":5}`), "&force=true").is(200, `"n":5`).owned("alice/Apply: spec.a; bob/Apply: spec.n")
	s.apply(path, "alice", named("w", `,"spec":{}`)).is(200).owned("alice/Apply:; bob/Apply: spec.n")
	if spec := fmt.Sprint(s.get(path).tree()["spec"]); spec != "map[n:5]" {
		t.Errorf("spec %s", spec)
	}
	s.do("PATCH", path, "application/apply-patch+yaml", named("w")).is(422, "fieldManager", "is required for apply patch")
	s.apply(path, "bob", named("w", `,"spec":{"zz":5}`)).is(500, "field not declared in schema")
	s.apply(path, "bob", "apiVersion: test.example.com/v1\nkind: Lead\nmetadata: {name: w}\nspec: {\"n\": 6}\n").is(200, `"n":6`)
}

// Other writes own the fields that they change, under the program's name or the given
// fieldManager. A status write owns no field of the spec.
func TestOwnersOfUpdates(t *testing.T) {
	s := newServer(t)
	path := leads + "/w"
	s.post(leads+"?fieldManager=maker", named("w", `,"spec":{"a":"x"},"status":{"a":"no"}`)).is(201).owned("maker/Update: spec.a")
	s.merge(path+"/status?fieldManager=controller", `{"spec":{"a":"no"},"status":{"n":1}}`).is(200).
		owned("controller/Update/status: status.n; maker/Update: spec.a")
	s.merge(path+"?fieldManager=changer", `{"spec":{"a":"y","n":1}}`).is(200).
		owned("changer/Update: spec.a spec.n; controller/Update/status: status.n; maker/Update:")
	s.apply(path+"/status", "applier", named("w", `,"status":{"a":"yes"}`)).is(200).
		owned("applier/Apply/status: status.a; changer/Update: spec.a spec.n; controller/Update/status: status.n; maker/Update:")
}

// A null that the schema does not allow is rejected, not dropped. To remove a field, the manager
// omits it.
func TestApplyNull(t *testing.T) {
	s := newServer(t)
	s.apply(leads+"/w", "alice", named("w", `,"spec":{"a":"x"}`)).is(201)
	s.apply(leads+"/w", "alice", named("w", `,"spec":{"a":null}`)).message(422,
		`Lead.test.example.com "w" is invalid: spec.a: Invalid value: "null": spec.a in body must be of type string: "null"`)
	// alice owns no field of the spec any more, and the merge expresses that with a null, as in
	// Kubernetes.
	s.apply(leads+"/w", "alice", named("w", `,"spec":{}`)).message(422,
		`Lead.test.example.com "w" is invalid: spec: Invalid value: "null": spec in body must be of type object: "null"`)
	s.apply(leads+"/w", "alice", named("w")).is(200)
}

// Metadata has a type whatever the schema of the kind. Null and empty fields in it are omitted,
// and a null label has an empty value.
func TestApplyMetadataOfNulls(t *testing.T) {
	s := newServer(t)
	for i, tt := range []struct{ metadata, want string }{
		{`"labels":{"a":null,"b":"c"}`, `"labels":{"a":"","b":"c"}`},
		{`"annotations":{"a":null}`, `"annotations":{"a":""}`},
		{`"labels":null,"annotations":null,"finalizers":null,"ownerReferences":null`, ""},
		{`"labels":{},"annotations":{},"finalizers":[],"ownerReferences":[]`, ""},
	} {
		name := fmt.Sprint("w", i)
		body := `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"` + name + `",` + tt.metadata + `}}`
		want := object.Tree{}
		if tt.want != "" {
			want = schematest.Tree(t, "{"+tt.want+"}")
		}
		for _, code := range []int{201, 200} {
			got := object.Metadata(s.apply(leads+"/"+name, "alice", body).is(code).tree())
			for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
				v, has := got[field]
				w, wanted := want[field]
				if has != wanted || !object.Equal(v, w) {
					t.Errorf("%s: %s is %v, want %v", tt.metadata, field, v, w)
				}
			}
		}
	}
	if names := s.get(leads).is(200).names(); names != "w0 w1 w2 w3" {
		t.Errorf("listed %s", names)
	}
}

// An empty list clears the managers of a native kind. For a custom kind it has no effect: a list
// with one empty entry clears them.
func TestNoManagers(t *testing.T) {
	for path, body := range map[string]string{
		leads:                     `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"x","labels":{"a":"b"}}}`,
		namespaced + "configmaps": `{"metadata":{"name":"x"},"data":{"a":"b"}}`,
	} {
		for name, write := range map[string]func(s *server) answer{
			"merge patch": func(s *server) answer { return s.merge(path+"/x", `{"metadata":{"managedFields":[]}}`) },
			"update": func(s *server) answer {
				t := s.get(path + "/x").tree()
				object.Metadata(t)["managedFields"] = []any{}
				return s.put(path+"/x", string(object.AppendJSON(nil, t)))
			},
		} {
			s := newServerOf(t, append(builtin.Definitions(), lead())...)
			s.post(path, body).is(201, `"managedFields":[{`)
			if path == leads {
				write(s).is(200, `"managedFields":[{`)
				s.merge(path+"/x", `{"metadata":{"managedFields":[{}]}}`).is(200)
			} else {
				write(s).is(200)
			}
			if got := s.get(path + "/x"); strings.Contains(got.body, "managedFields") {
				t.Errorf("%s of %s: %s", name, path, got.body)
			}
			if got := s.merge(path+"/x", `{"metadata":{"labels":{"l":"x"}}}`).is(200); strings.Contains(got.body, "managedFields") {
				t.Errorf("%s of %s, and another: %s", name, path, got.body)
			}
		}
	}
}

// A repeated apply changes nothing, however much later, even if it has fields that are not
// stored.
func TestApplyAgain(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	applied := strings.Replace(deployment, `"replicas"`, `"paused":false,"replicas"`, 1)
	s.apply(deployments+"/a", "m", applied).is(201)
	long := object.Clone(object.Metadata(s.get(deployments + "/a").tree())["managedFields"]).([]any)
	long[0].(object.Tree)["time"] = "2001-01-01T00:00:00Z"
	was := s.merge(deployments+"/a", `{"metadata":{"labels":{"a":"b"},"managedFields":`+string(object.AppendJSON(nil, long))+`}}`).is(200, "2001").tree()
	if now := s.apply(deployments+"/a", "m", applied).is(200).tree(); !object.Equal(now, was) {
		t.Errorf("applying the same again gave %v\nof %v", now["metadata"], was["metadata"])
	}
	s.apply(deployments+"/a", "m", strings.Replace(applied, `"replicas":3`, `"replicas":4`, 1)).is(200, `"replicas":4`)
	if now := s.get(deployments + "/a"); strings.Contains(now.body, "2001") {
		t.Errorf("an apply that changes something has no time: %s", now.body)
	}
}

// A duplicate field in an apply is rejected as invalid YAML, not as an invalid object.
func TestAppliedTwice(t *testing.T) {
	s := newServer(t)
	const twice = "apiVersion: test.example.com/v1\nkind: Lead\nmetadata:\n  name: a\nspec:\n  a: one\n  a: two\n"
	for range 2 { // a new object, and an existing one
		s.do("PATCH", leads+"/a?fieldManager=m&fieldValidation=Strict", "application/apply-patch+yaml", twice).is(400,
			`"message":"error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key \"a\" already set in map"`)
		s.do("PATCH", leads+"/a?fieldManager=m", "application/apply-patch+yaml", named("a"))
	}
}
