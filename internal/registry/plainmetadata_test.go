package registry

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Metadata that plainMetadata accepts is valid for Kubernetes.
func TestPlainMetadata(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{
		"a", "a-b", "-a", "a.b", "a..b", "A", "a_b", "", "x/y", "x/", "/y", "x.y/z", "x.Y/z", "x/y/z", "é", "a\n", strings.Repeat("a", 63), strings.Repeat("a", 64),
		strings.Repeat("a.", 126) + "a/b", strings.Repeat("a.", 127) + "a/b", "a.", ".a", "0", "orphan", "foregroundDeletion", "Update", "Apply", "FieldsV1",
	}
	word := func() string { return words[r.IntN(len(words))] }
	nearly := func(v any) any {
		if r.IntN(12) == 0 {
			return []any{nil, int64(-1), int64(5), word(), []any{word()}, object.Tree{word(): word()}}[r.IntN(6)]
		}
		return v
	}
	metadata := func() object.Tree {
		m := object.Tree{"name": nearly("n"), "namespace": nearly("ns"), "resourceVersion": nearly("1"), "uid": nearly("u"), "generation": nearly(int64(r.IntN(3)))}
		switch r.IntN(10) {
		case 0:
			m["labels"] = nearly(object.Tree{word(): word()})
		case 1:
			m["annotations"] = nearly(object.Tree{word(): word(), "size": strings.Repeat("x", r.IntN(2)*256<<10)})
		case 2:
			m["finalizers"] = nearly([]any{word()})
		case 3:
			m["managedFields"] = nearly([]any{nearly(object.Tree{
				"manager": nearly(strings.Repeat(word(), 1+r.IntN(3))), "operation": nearly("Update"), "fieldsType": nearly("FieldsV1"), "subresource": nearly("status"),
			})})
		case 4:
			m[[]string{"deletionTimestamp", "creationTimestamp", "generateName"}[r.IntN(3)]] = nearly("2020-01-01T00:00:00Z")
		case 5:
			m["name"] = word()
		case 6:
			m["namespace"] = word()
		}
		for key, v := range m {
			if v == nil {
				delete(m, key) // it would not be metadata
			}
		}
		return m
	}
	plain := 0
	for range 20_000 {
		d := &resource.Definition{Namespaced: r.IntN(4) > 0}
		now, old := object.Tree{"metadata": metadata()}, object.Tree(nil)
		if r.IntN(2) == 0 {
			old = object.Tree{"metadata": metadata()}
		}
		if !plainMetadata(d.Namespaced, now, old) {
			continue
		}
		plain++
		if errs := fullyValidateMetadata(d, now, old); len(errs) > 0 {
			t.Errorf("%s over %s is taken for plain: %v", object.AppendJSON(nil, now), object.AppendJSON(nil, old), errs)
		}
	}
	if plain < 1000 {
		t.Errorf("only %d were plain", plain)
	}
}
