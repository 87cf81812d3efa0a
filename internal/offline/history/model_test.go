package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/merge"
	"github.com/anykind/anykind/internal/object/objecttest"
)

// leaves returns the scalars of a value by their paths.
func leaves(out map[string]string, path string, v any) map[string]string {
	switch v := v.(type) {
	case object.Tree:
		for key, e := range v {
			leaves(out, path+"."+key, e)
		}
	case []any:
		for _, e := range v {
			leaves(out, path+merge.KeyText([]string{"name"}, e), e)
		}
	default:
		out[path] = merge.Text(v)
	}
	return out
}

// flat returns the changes of the scalars of a blamed value by their paths.
func (b *blamed) flat(out map[string]string, path string) map[string]string {
	for key, e := range b.fields {
		e.flat(out, path+"."+key)
	}
	for _, e := range b.elements {
		e.flat(out, path+merge.KeyText([]string{"name"}, e.value))
	}
	if b.fields == nil && b.elements == nil {
		out[path] = "^"
		if b.by != nil {
			out[path] = b.by.Revision
		}
	}
	return out
}

// Blame of a random history finds for each scalar the last change after which it differed, and its lines
// are the object as YAML.
func TestBlameOfRandomHistories(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var changes []Change
		states := []object.Tree{objecttest.Value(r, 4).(object.Tree)}
		if seed%2 == 0 {
			changes = append(changes, Change{Revision: "0", Type: Added, Object: states[0]})
		}
		for i := range 5 {
			next := objecttest.Value(r, 4).(object.Tree)
			for key, v := range states[i] {
				if r.IntN(2) == 0 {
					next[key] = v
				}
			}
			states = append(states, next)
			changes = append(changes, Change{Revision: fmt.Sprint(i + 1), Type: "MODIFIED", Before: states[i], Object: next})
		}
		var b *blamed
		for i := range changes {
			if c := &changes[i]; c.Before != nil {
				b = b.set(c.Before, nil)
			}
			b = b.set(changes[i].Object, &changes[i])
		}
		want := leaves(map[string]string{}, "", states[5])
		for path := range want {
			by := "^"
			if seed%2 == 0 {
				by = "0"
			}
			for i := 1; i <= 5; i++ {
				was, is := leaves(map[string]string{}, "", states[i-1]), leaves(map[string]string{}, "", states[i])
				if v, ok := was[path]; is[path] != "" && (!ok || v != is[path]) {
					by = fmt.Sprint(i)
				}
			}
			want[path] = by
		}
		if diff := cmp.Diff(want, b.flat(map[string]string{}, "")); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		var text strings.Builder
		for _, l := range Blame(changes) {
			text.WriteString(l.Text + "\n")
		}
		if want := marshal(merge.Without(states[5])); want != text.String() {
			t.Fatalf("seed %d: %s", seed, cmp.Diff(want, text.String()))
		}
	}
}

// Lines of YAML have the text of the object, in every form of a value.
func TestBlameYAML(t *testing.T) {
	o := objecttest.Tree(t, `{a: [], b: {}, c: [[1, {x: y}], [], {}, "- a"], "on": "yes", d: "a\n\n  b\n", e: [{f: [{g: 1}]}], 'x: y': {z: null}, h: ["a\nb\n"]}`)
	var text strings.Builder
	for _, l := range Blame([]Change{{Type: Added, Object: o}}) {
		text.WriteString(l.Text + "\n")
	}
	if want := marshal(o); want != text.String() {
		t.Error(cmp.Diff(want, text.String()))
	}
}
