package rest_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/memkv"
)

const (
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"

	anys = "/apis/test.example.com/v1/anys"
)

// whatever is a kind whose objects may have any field.
func whatever() *resource.Definition {
	yes := true
	return resource.New(resource.Definition{
		Group: "test.example.com", Plural: "anys", Singular: "any", Kind: "Any", ListKind: "AnyList",
		HasGeneration: true, StoragePrefix: "/registry/test.example.com/anys/",
		Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true, Schema: schema.Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) {
			return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}, nil
		}, model.Kind{Group: "test.example.com", Version: "v1", Kind: "Any", ListKind: "AnyList"})}},
	})
}

func anyOf(name string, more ...string) string { return object1("Any", name, more...) }

// "Request body: 3 MiB, 413", for every request with a body. One byte less is accepted.
func TestBodySize(t *testing.T) {
	s := newServerOf(t, whatever())
	s.post(anys, anyOf("a")).is(201)
	padded := func(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }
	for _, tt := range []struct{ method, path, contentType, body string }{
		{"POST", anys, "application/json", anyOf("b")},
		{"PUT", anys + "/a", "application/json", anyOf("a", `,"x":1`)},
		{"PATCH", anys + "/a", mergePatch, `{}`},
		{"PATCH", anys + "/a", jsonPatch, `[]`},
		{"PATCH", anys + "/a?fieldManager=m", applyPatch, anyOf("a")},
		{"DELETE", anys + "/a", "application/json", `{}`},
	} {
		s.do(tt.method, tt.path, tt.contentType, padded(tt.body, rest.MaxBody+1)).message(413, "Request entity too large: limit is 3145728")
		// The body is read before the options of the query.
		path, query, _ := strings.Cut(tt.path, "?")
		s.do(tt.method, path+"?dryRun=odd&"+query, tt.contentType, padded(tt.body, rest.MaxBody+1)).is(413)
		if a := s.do(tt.method, tt.path, tt.contentType, padded(tt.body, rest.MaxBody)); a.code == 413 {
			t.Errorf("%s %s: %s", tt.method, tt.contentType, a.body)
		}
	}
}

// "Operations in a JSON patch: 10,000, 413", "total copied by a JSON patch: 3 MiB,
// 413".
func TestPatchSize(t *testing.T) {
	s := newServerOf(t, whatever())
	s.post(anys, anyOf("a", `,"x":"`+strings.Repeat("x", 100_000)+`"`)).is(201)
	operations := func(n int, operation string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(operation, "$", fmt.Sprint(i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	before := s.get(anys + "/a").body
	s.do("PATCH", anys+"/a", jsonPatch, operations(10_001, `{"op":"test","path":"/kind","value":"Any"}`)).
		message(413, "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001")
	s.do("PATCH", anys+"/a", jsonPatch, operations(10_000, `{"op":"test","path":"/kind","value":"Any"}`)).is(200)
	s.do("PATCH", anys+"/a", jsonPatch, operations(32, `{"op":"copy","from":"/x","path":"/x$"}`)).
		message(413, "Request entity too large: Unable to complete the copy, the accumulated size increase of copy is over the limit of 3145728 bytes")
	s.do("PATCH", anys+"/a", jsonPatch, operations(40, `{"op":"copy","from":"/spec","path":"/spec/x$"}`)).is(422)
	if after := s.get(anys + "/a").body; after != before {
		t.Errorf("a patch that was refused changed the object to %.300s", after)
	}
}

// deep returns nested objects or lists.
func deep(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

func deepList(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// "Nesting depth of JSON and YAML: 10,000, 400", "CVE-2019-11253, -11254 YAML and
// JSON bombs: alias and depth limits".
func TestDepth(t *testing.T) {
	s := newServerOf(t, whatever())
	s.post(anys, anyOf("a")).is(201)
	const yaml = "application/yaml"
	for _, tt := range []struct{ method, path, contentType, body, message string }{
		{"POST", anys, "application/json", anyOf("b", `,"x":`+deep(10_000)), "exceeded max depth"},
		{"POST", anys, "application/json", anyOf("b", `,"x":`+deepList(1_000_000)), "exceeded max depth"},
		{"POST", anys, "application/json", strings.Repeat("[", 1_000_000), "exceeded max depth"},
		{"PUT", anys + "/a", "application/json", anyOf("a", `,"x":`+deep(10_000)), "exceeded max depth"},
		{"POST", anys, yaml, "x: " + deepList(10_001), "exceeded max depth of 10000"},
		{"POST", anys, yaml, bomb(), "excessive aliasing"},
		{"PATCH", anys + "/a", mergePatch, `{"x":` + deep(10_000) + `}`, "invalid JSON patch"},
		{"PATCH", anys + "/a", jsonPatch, `[{"op":"add","path":"/x","value":` + deep(10_000) + `}]`, "invalid JSON patch"},
		{"PATCH", anys + "/a?fieldManager=m", applyPatch, "x: " + deepList(10_001), "error encoding patch: yaml: exceeded max depth of 10000"},
		{"PATCH", anys + "/a?fieldManager=m", applyPatch, bomb(), "error encoding patch: yaml: document contains excessive aliasing"},
	} {
		s.do(tt.method, tt.path, tt.contentType, tt.body).is(400, tt.message)
	}
}

// bomb returns a small document that is large once its aliases are resolved.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

// Every stored object can be read, alone and in a list: no sequence of writes, and no
// managedFields, can nest an object more deeply than decoding allows.
func TestDepthOfStored(t *testing.T) {
	s := newServerOf(t, whatever())
	s.post(anys, anyOf("a")).is(201)
	s.do("PATCH", anys+"/a", jsonPatch, `[{"op":"add","path":"/x","value":`+deep(6000)+`}]`).is(200)
	further := `[{"op":"add","path":"/x` + strings.Repeat("/a", 6000) + `","value":` + deep(5000) + `}]`
	s.do("PATCH", anys+"/a", jsonPatch, further).message(422, "the server rejected our request due to an error in our request")
	s.merge(anys+"/a", `{"y":1}`).is(200)

	s.post(anys, anyOf("b", `,"x":`+deep(9_998))).is(400, "nested more than 9992 levels deep")
	if names := s.get(anys).is(200).names(); names != "a" {
		t.Errorf("stored are %s", names)
	}
	s.delete(anys, "").is(200)
}

// Warnings fit the headers that clients accept: 4096 runes together, and 256 each once that is
// exceeded.
func TestWarningsAreBounded(t *testing.T) {
	s := newServer(t)
	unknown := func(n, size int) string {
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"%s%05d":1`, strings.Repeat("é", size), i)
		}
		return `,"spec":{` + strings.Join(fields, ",") + `}`
	}
	for _, tt := range []struct {
		name         string
		fields, size int
		warnings     int
		longest      int // in runes
	}{
		{"some", 10, 10, 10, 46},
		{"some that are long", 3, 1000, 3, 1036},
		{"some that are too long", 4, 1000, 4, 265},
		{"many", 20_000, 0, 158, 36},
		{"many that are long", 1000, 1000, 16, 265},
		{"one as long as a request", 1, 1_000_000, 1, 265},
	} {
		got := s.post(leads, named(fmt.Sprintf("x%d-%d", tt.fields, tt.size), unknown(tt.fields, tt.size))).is(201).header["Warning"]
		longest := 0
		for _, w := range got {
			longest = max(longest, utf8.RuneCountInString(w))
		}
		if len(got) != tt.warnings || longest != tt.longest {
			t.Errorf("%s: %d warnings, the longest of %d runes, want %d and %d", tt.name, len(got), longest, tt.warnings, tt.longest)
		}
	}
}

// An object that is too large for the store because of its managedFields is stored without them;
// one that is too large anyway is rejected. So is an apply: without managedFields it has no
// effect.
func TestLargeManagedFields(t *testing.T) {
	const limit = 2000
	s := newServerOver(t, memkv.New(memkv.Options{MaxValueBytes: limit}), lead())
	body := func(name string, labels int) string {
		var list []string
		for i := range labels {
			list = append(list, fmt.Sprintf(`"label-%d":"x"`, i))
		}
		return fmt.Sprintf(`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":%q,"labels":{%s}},"spec":{"a":"x"}}`, name, strings.Join(list, ","))
	}
	owned := func(o object.Tree) bool { _, ok := object.Metadata(o)["managedFields"]; return ok }
	if !owned(s.post(leads, body("small", 1)).is(201).tree()) {
		t.Error("a small object has no managedFields")
	}
	if owned(s.post(leads, body("a", 70)).is(201).tree()) {
		t.Error("created with managedFields")
	}
	s.post(leads, body("b", 200)).is(413)
	small := s.get(leads + "/small").tree()
	revision := `"name":"small","resourceVersion":"` + object.ResourceVersion(small) + `"`
	if owned(s.put(leads+"/small", strings.Replace(body("small", 70), `"name":"small"`, revision, 1)).is(200).tree()) {
		t.Error("replaced with managedFields")
	}
	s.do("PATCH", leads+"/small", mergePatch, `{"metadata":{"labels":null}}`).is(200)
	if o := s.do("PATCH", leads+"/small", mergePatch, body("small", 70)).is(200).tree(); owned(o) {
		t.Error("patched with managedFields")
	}
	s.do("PATCH", leads+"/c?fieldManager=me", applyPatch, body("c", 70)).is(413)
}
