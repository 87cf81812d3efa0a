package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/jsonpatch"
	"github.com/anykind/anykind/internal/object/status"
)

func tree(t *testing.T, s string) object.Tree {
	t.Helper()
	out := object.Tree{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(s), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Each case patches an object and gives the result; "" is a patch that does not fit. The old object
// never changes.
func TestJSONPatch(t *testing.T) {
	for _, tt := range []struct{ name, old, patch, want string }{
		{"add a field", `{"a":{}}`, `[{"op":"add","path":"/a/b","value":1}]`, `{"a":{"b":1}}`},
		{"add over a field", `{"a":1}`, `[{"op":"add","path":"/a","value":2}]`, `{"a":2}`},
		{"add below nothing", `{}`, `[{"op":"add","path":"/a/b","value":1}]`, ``},
		{"add at the end", `{"l":[1]}`, `[{"op":"add","path":"/l/-","value":2}]`, `{"l":[1,2]}`},
		{"add after the end", `{"l":[1]}`, `[{"op":"add","path":"/l/1","value":2}]`, `{"l":[1,2]}`},
		{"add past the end", `{"l":[1]}`, `[{"op":"add","path":"/l/2","value":2}]`, ``},
		{"insert", `{"l":[1,3]}`, `[{"op":"add","path":"/l/1","value":2}]`, `{"l":[1,2,3]}`},
		{"insert in a nested list", `{"l":[[1],[3]]}`, `[{"op":"add","path":"/l/1/0","value":2}]`, `{"l":[[1],[2,3]]}`},
		{"remove", `{"a":1,"b":2}`, `[{"op":"remove","path":"/a"}]`, `{"b":2}`},
		{"remove nothing", `{}`, `[{"op":"remove","path":"/a"}]`, ``},
		{"remove of a list", `{"l":[1,2,3]}`, `[{"op":"remove","path":"/l/1"}]`, `{"l":[1,3]}`},
		{"negative index", `{"l":[1,2,3]}`, `[{"op":"remove","path":"/l/-1"}]`, `{"l":[1,2]}`},
		{"replace", `{"a":1}`, `[{"op":"replace","path":"/a","value":{"b":null}}]`, `{"a":{"b":null}}`},
		{"replace nothing", `{}`, `[{"op":"replace","path":"/a","value":1}]`, `{"a":1}`},
		{"replace past the end", `{"l":[1]}`, `[{"op":"replace","path":"/l/1","value":2}]`, ``},
		{"copy of nothing", `{}`, `[{"op":"copy","from":"/a","path":"/b"}]`, `{"b":null}`},
		{"move of nothing", `{}`, `[{"op":"move","from":"/a","path":"/b"}]`, ``},
		{"move", `{"a":1,"b":{}}`, `[{"op":"move","from":"/a","path":"/b/c"}]`, `{"b":{"c":1}}`},
		{"copy is a copy", `{"a":{"x":1}}`,
			`[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/x","value":2}]`, `{"a":{"x":1},"b":{"x":2}}`},
		{"test holds", `{"a":{"x":1}}`, `[{"op":"test","path":"/a","value":{"x":1.0}}]`, `{"a":{"x":1}}`},
		{"test fails", `{"a":1}`, `[{"op":"test","path":"/a","value":2}]`, ``},
		{"test that a field is missing", `{}`, `[{"op":"test","path":"/a","value":null}]`, `{}`},
		{"escapes", `{"a/b":{"c~d":1}}`, `[{"op":"replace","path":"/a~1b/c~0d","value":2}]`, `{"a/b":{"c~d":2}}`},
		{"the whole object", `{"a":1}`, `[{"op":"test","path":"","value":{"a":1}},{"op":"replace","path":"","value":{"b":2}}]`, `{"b":2}`},
		{"no object in the place of one", `{"a":1}`, `[{"op":"replace","path":"","value":1}]`, ``},
		{"nothing is beside the whole object", `{"a":1}`, `[{"op":"add","path":"","value":{"b":2}}]`, ``},
		{"an unknown operation", `{"a":1}`, `[{"op":"drop","path":"/a"}]`, ``},
		{"all or nothing", `{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := tree(t, tt.old)
			p, err := JSON([]byte(tt.patch))
			if err != nil {
				t.Fatal(err)
			}
			check(t, p, old, tt.old, tt.want)
		})
	}
}

func TestMergePatch(t *testing.T) {
	for _, tt := range []struct{ name, old, patch, want string }{
		{"set", `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
		{"null removes", `{"a":1,"b":2}`, `{"a":null,"c":null}`, `{"b":2}`},
		{"deep", `{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":null,"e":3}}}`, `{"a":{"b":{"d":2,"e":3}}}`},
		{"a list is one value", `{"l":[1,2]}`, `{"l":[3]}`, `{"l":[3]}`},
		{"a null in a list", `{}`, `{"a":{"l":[1,null,{"b":null,"c":[{"d":null}]}]}}`, `{"a":{"l":[1,null,{"c":[{}]}]}}`},
		{"a null in a list over a list", `{"l":[{"b":1}]}`, `{"l":[{"b":null}]}`, `{"l":[{}]}`},
		{"a null in a list over an object", `{"l":{"b":1}}`, `{"l":[{"b":null}]}`, `{"l":[{"b":null}]}`},
		{"an object over a value", `{"a":1}`, `{"a":{"b":{"c":null,"d":1}}}`, `{"a":{"b":{"d":1}}}`},
		{"a value over an object", `{"a":{"b":1}}`, `{"a":"x"}`, `{"a":"x"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Merge([]byte(tt.patch))
			if err != nil {
				t.Fatal(err)
			}
			check(t, p, tree(t, tt.old), tt.old, tt.want)
		})
	}
}

// "Strategic merge patch supports special operations": the operations on a list with a merge key, and
// values that are no patch.
func TestStrategicMergePatch(t *testing.T) {
	const service = `{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"name":"a","port":80}]}}`
	spec := func(s string) string { return `{"apiVersion":"v1","kind":"Service","spec":` + s + `}` }
	for _, tt := range []struct{ name, patch, want string }{
		{"null", `null`, service},
		{"nothing", `{}`, service},
		{"an item by its key", `{"spec":{"ports":[{"port":80,"name":"b"},{"port":81}]}}`, spec(`{"ports":[{"name":"b","port":80},{"port":81}]}`)},
		{"a whole number", `{"spec":{"ports":[{"port":81.0}]}}`, spec(`{"ports":[{"port":81},{"name":"a","port":80}]}`)},
		{"numbers that are not whole, or too large", `{"spec":{"a":1.5,"b":1e19}}`, spec(`{"a":1.5,"b":10000000000000000000,"ports":[{"name":"a","port":80}]}`)},
		{"an item deleted", `{"spec":{"ports":[{"port":80,"$patch":"delete"}]}}`, spec(`{"ports":[]}`)},
		{"another kind", `{"apiVersion":"a/b/c","kind":"X"}`, service},
		{"no kind", `{"apiVersion":null,"kind":""}`, service},
		{"all of it", `{"$patch":"delete"}`, `{"apiVersion":"v1","kind":"Service"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Strategic([]byte(tt.patch), &corev1.Service{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, p, tree(t, service), service, tt.want)
		})
	}
	for _, tt := range []struct {
		patch string
		code  int32
		want  string
	}{
		{`[`, 400, `invalid JSON patch`},
		{`[]`, 400, `json: cannot unmarshal array into Go value of type map[string]interface {}`},
		{`{"spec":{"ports":[{"name":"b"}]}}`, 422, `map: map[name:b] does not contain declared merge key: port`},
		{`{"spec":{"$patch":"bogus"}}`, 422, `unknown patch type: bogus in map: map[$patch:bogus]`},
		{`{"spec":{"ports":["x"]}}`, 422, `list element types are not identical: [[map[name:a port:80]] [x]]`},
		{`{"spec":{"$retainKeys":"x"}}`, 400, `invalid patch format of retainKeys`},
	} {
		p, err := Strategic([]byte(tt.patch), &corev1.Service{})
		if err == nil {
			_, err = p.Apply(tree(t, service))
		}
		if got := status.Of(err); got.Code != tt.code || got.Message != tt.want {
			t.Errorf("%s: %d %s", tt.patch, got.Code, got.Message)
		}
	}
}

func check(t *testing.T, p *Patch, old object.Tree, unchanged, want string) {
	t.Helper()
	got, err := p.Apply(old)
	if want == "" {
		if err == nil {
			t.Errorf("became %s, want an error", object.AppendJSON(nil, got))
		}
	} else if err != nil {
		t.Error(err)
	} else if s := string(object.AppendJSON(nil, got)); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
	if s := string(object.AppendJSON(nil, old)); s != unchanged {
		t.Errorf("the old object became %s", s)
	}
}

// A patch beyond a limit is a 413; invalid data is a 400.
func TestRefusedPatches(t *testing.T) {
	many := "[" + strings.Repeat(`{"op":"remove","path":"/a"},`, jsonpatch.MaxOperations) + `{"op":"remove","path":"/a"}]`
	for _, tt := range []struct{ patch, want string }{
		{`{`, "invalid JSON patch"},
		{`{}`, "error decoding patch"},
		{many, "The allowed maximum operations in a JSON patch is 10000, got 10001"},
	} {
		if _, err := JSON([]byte(tt.patch)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.20s: %v, want %s", tt.patch, err, tt.want)
		}
	}
	for _, tt := range []struct{ patch, want string }{
		{`[`, "invalid JSON patch"},
		{`[]`, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"},
	} {
		if _, err := Merge([]byte(tt.patch)); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.patch, err, tt.want)
		}
	}
}

// "CVE-2019-1002100 JSON patch copy bombs: operation and copy caps": a patch that doubles by copies
// fails before it exhausts memory.
func TestCopyBomb(t *testing.T) {
	ops := []map[string]string{}
	for i := range 40 {
		ops = append(ops, map[string]string{"op": "copy", "from": "/a", "path": fmt.Sprint("/a/x", i)})
	}
	data, _ := json.Marshal(ops)
	p, err := JSON(data)
	if err != nil {
		t.Fatal(err)
	}
	old := tree(t, `{"a":{"text":"`+strings.Repeat("x", 1000)+`"}}`)
	if _, err := p.Apply(old); err == nil || !strings.Contains(err.Error(), "accumulated size") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkMerge(b *testing.B) {
	old := object.Tree{"metadata": object.Tree{"name": "n"}, "spec": object.Tree{"a": int64(1), "b": "x"}}
	p, err := Merge([]byte(`{"spec":{"a":2}}`))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Apply(old); err != nil {
			b.Fatal(err)
		}
	}
}
