package objecttest

import (
	"math/rand/v2"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// Tree reads YAML; "" is no object.
func Tree(t testing.TB, text string) object.Tree {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out object.Tree
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Value returns a random object of small depth. Elements of lists have names.
func Value(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case n < 3 && depth > 0 || depth == 4:
		out := object.Tree{}
		for range r.IntN(4) {
			out[string(rune('a'+r.IntN(4)))] = Value(r, depth-1)
		}
		return out
	case n == 3 && depth > 0:
		out := []any{}
		for i := range 4 {
			if r.IntN(2) == 0 {
				out = append(out, object.Tree{"name": string(rune('k' + i)), "v": Value(r, depth-2)})
			}
		}
		return out
	case n == 4:
		return strings.Repeat("line\n", r.IntN(3)) + "- x: y"
	}
	return int64(r.IntN(3))
}
