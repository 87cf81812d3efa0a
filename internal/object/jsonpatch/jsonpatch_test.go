package jsonpatch

import (
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// Errors of operations have the words of Kubernetes' JSON patch library.
func TestOperations(t *testing.T) {
	for patch, want := range map[string]string{
		`[{"op":"add","path":"/a/b/c","value":1}]`:        `add operation does not apply: doc is missing path: "/a/b/c": missing value`,
		`[{"op":"remove","path":"/none"}]`:                `error in remove for path: '/none': Unable to remove nonexistent key: none: missing value`,
		`[{"op":"replace","path":"/none/x","value":1}]`:   `replace operation does not apply: doc is missing path: /none/x: missing value`,
		`[{"op":"add","path":"/list/7","value":1}]`:       `error in add for path: '/list/7': Unable to access invalid index: 7: invalid index referenced`,
		`[{"op":"test","path":"/list/0","value":2}]`:      `testing value /list/0 failed: test failed`,
		`[{"op":"move","from":"/none","path":"/x"}]`:      `error in move for path: 'none': Unable to remove nonexistent key: none: missing value`,
		`[{"op":"copy","from":"/none/x","path":"/x"}]`:    `copy operation does not apply: doc is missing from path: /none/x: missing value`,
		`[{"op":"replace","path":"/list/7","value":1}]`:   `replace operation does not apply: doc is missing key: /list/7: missing value`,
		`[{"op":"test","path":"/none/x","value":2}]`:      `test operation does not apply: is missing path: /none/x: missing value`,
		`[{"op":"test","path":"/list/x","value":2}]`:      `error in test for path: '/list/x': strconv.Atoi: parsing "x": invalid syntax`,
		`[{"op":"add","path":"/list/x","value":2}]`:       `error in add for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax`,
		`[{"op":"copy","from":"/list/7","path":"/x"}]`:    `error in copy for from: '/list/7': Unable to access invalid index: 7: invalid index referenced`,
		`[{"op":"copy","from":"/list","path":"/list/7"}]`: `error while adding value during copy: Unable to access invalid index: 7: invalid index referenced`,
		`[{"op":"dance","path":"/x"}]`:                    `Unexpected kind: dance`,
		`[{"op":"add","path":"/list/-","value":{"a":1}}]`: ``,
	} {
		operations, err := Decode([]byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		old := object.Tree{"list": []any{int64(1)}}
		said := ""
		if _, err = operations.Apply(old); err != nil {
			said = err.Error()
		}
		if said != want {
			t.Errorf("%s: %s, want %s", patch, said, want)
		}
		if len(old["list"].([]any)) != 1 {
			t.Errorf("%s changes the old object", patch)
		}
	}
	if _, err := Decode([]byte(`{}`)); err == nil {
		t.Error("an object is a patch")
	}
}
