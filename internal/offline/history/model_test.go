package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// tree reads YAML; "" is no object.
func tree(t *testing.T, text string) object.Tree {
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

func TestCompare(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"a field", "{spec: {replicas: 3}}", "{spec: {replicas: 5}}", "  .spec.replicas: 3 → 5"},
		{"a subtree", "{}", "{spec: {a: 1, b: <x>}}", `+ .spec: {"a":1,"b":"<x>"}`},
		{"a removed field", "{metadata: {labels: {a: b, a/c: d}}}", "{metadata: {labels: {a: b}}}", `- .metadata.labels.a/c: "d"`},
		{"a form", "{a: {b: 1}}", "{a: [1]}", `  .a: {"b":1} → [1]`},
		{"null", "{a: null}", "{}", "- .a: null"},
		{"bookkeeping", "{metadata: {generation: 1, resourceVersion: '1', managedFields: []}}", "{metadata: {generation: 2}}", ""},
		{"an element by name", "{c: [{name: a, image: x}, {name: b}]}", "{c: [{name: z}, {name: a, image: w}, {name: b}]}",
			"  .c[name=\"a\"].image: \"x\" → \"w\"\n+ .c[name=\"z\"]: {\"name\":\"z\"}"},
		{"an element by two keys", "{p: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}", "{p: [{containerPort: 80, protocol: UDP}]}",
			`- .p[containerPort=80,protocol="TCP"]: {"containerPort":80}`},
		{"order", "{c: [{name: a}, {name: b}]}", "{c: [{name: b}, {name: a}]}", "  .c[0].name: \"a\" → \"b\"\n  .c[1].name: \"b\" → \"a\""},
		{"elements by index", "{a: [x, q]}", "{a: [x, z, w]}", "  .a[1]: \"q\" → \"z\"\n+ .a[2]: \"w\""},
		{"a long value", "{}", "{a: " + strings.Repeat("x", 100) + "}", `+ .a: "` + strings.Repeat("x", 58) + "…"},
	} {
		var lines []string
		for _, d := range Compare(tree(t, tt.before), tree(t, tt.after)) {
			lines = append(lines, d.String())
		}
		if diff := cmp.Diff(tt.want, strings.Join(lines, "\n")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestUndo(t *testing.T) {
	for _, tt := range []struct {
		name, before, after, now string
		want, forced             string
		conflicts                string
	}{
		{"unchanged since", "{a: 1}", "{a: 2, b: 3}", "{a: 2, b: 3}", "{a: 1}", "", ""},
		{"another field since", "{a: 1}", "{a: 2}", "{a: 2, c: 1}", "{a: 1, c: 1}", "", ""},
		{"undone already", "{a: 1}", "{a: 2}", "{a: 1}", "{a: 1}", "", ""},
		{"conflict", "{a: 1, b: 1}", "{a: 2, b: 2}", "{a: 3, b: 2}", "{a: 3, b: 1}", "{a: 1, b: 1}", ".a: was 1, the change set 2, is 3"},
		{"removed since", "{a: 1}", "{a: 2}", "{}", "{}", "{a: 1}", ".a: was 1, the change set 2, is (absent)"},
		{"a map with a field since", "{}", "{m: {a: 1}}", "{m: {a: 1, b: 2}}", "{m: {b: 2}}", "", ""},
		{"a map without its field", "{}", "{m: {a: 1, b: 1}}", "{m: {a: 1}}", "{}", "", ""},
		{"an element returns to its place", "{c: [{name: a}, {name: b}, {name: c}]}", "{c: [{name: a}, {name: c}]}", "{c: [{name: a}, {name: c, x: 1}]}",
			"{c: [{name: a}, {name: b}, {name: c, x: 1}]}", "", ""},
		{"an element goes", "{c: [{name: a}]}", "{c: [{name: b}, {name: a}]}", "{c: [{name: b}, {name: d}, {name: a}]}", "{c: [{name: d}, {name: a}]}", "", ""},
		{"an element by index", "{c: [x, q]}", "{c: [x, z]}", "{c: [w, z]}", "{c: [w, q]}", "", ""},
		{"lists of other lengths", "{c: [x]}", "{c: [x, q]}", "{c: [x, q, z]}", "{c: [x, q, z]}", "{c: [x]}", `.c: was ["x"], the change set ["x","q"], is ["x","q","z"]`},
		{"created and unchanged", "", "{a: 1, metadata: {uid: u}}", "{a: 1, metadata: {uid: u, resourceVersion: '7'}}", "", "", ""},
		{"created, changed since", "", "{a: 1}", "{a: 2}", "{a: 2}", "", ".a: was (absent), the change set 1, is 2"},
		{"changed, deleted since", "{a: 1}", "{a: 2}", "", "", "{a: 1}", `.: was {"a":1}, the change set {"a":2}, is (absent)`},
		{"deleted", "{a: 1, metadata: {name: n, uid: u}}", "", "", "{a: 1, metadata: {name: n}}", "", ""},
		{"deleted, created anew", "{a: 1}", "", "{a: 2}", "{a: 2}", "{a: 1}", ".a: was 1, the change set (absent), is 2"},
	} {
		for _, force := range []bool{false, true} {
			want := tt.want
			if force && tt.conflicts != "" {
				want = tt.forced
			}
			got, conflicts := Undo(tree(t, tt.before), tree(t, tt.after), tree(t, tt.now), force)
			if diff := cmp.Diff(tree(t, want), got); diff != "" {
				t.Errorf("%s, force %v: %s", tt.name, force, diff)
			}
			var lines []string
			for _, c := range conflicts {
				lines = append(lines, c.String())
			}
			if diff := cmp.Diff(tt.conflicts, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		}
	}
}

// random returns a random object of small depth. Elements of lists have names.
func random(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case n < 3 && depth > 0 || depth == 4:
		out := object.Tree{}
		for range r.IntN(4) {
			out[string(rune('a'+r.IntN(4)))] = random(r, depth-1)
		}
		return out
	case n == 3 && depth > 0:
		out := []any{}
		for i := range 4 {
			if r.IntN(2) == 0 {
				out = append(out, object.Tree{"name": string(rune('k' + i)), "v": random(r, depth-2)})
			}
		}
		return out
	case n == 4:
		return strings.Repeat("line\n", r.IntN(3)) + "- x: y"
	}
	return int64(r.IntN(3))
}

// The undo of a change on the unchanged object gives the earlier object. After a later change of a separate
// field, it gives the earlier object with that field.
func TestUndoOfRandomChanges(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		before, after := random(r, 4).(object.Tree), random(r, 4).(object.Tree)
		got, conflicts := Undo(before, after, after, false)
		if !object.Equal(got, before) || len(conflicts) > 0 {
			t.Fatalf("seed %d: the undo of %s → %s gives %s, %v", seed, Text(before), Text(after), Text(got), conflicts)
		}
		now, want := object.CloneTree(after), object.CloneTree(before)
		now["other"], want["other"] = int64(1), int64(1)
		if got, conflicts = Undo(before, after, now, false); !object.Equal(got, want) || len(conflicts) > 0 {
			t.Fatalf("seed %d: the undo of %s → %s gives %s, %v", seed, Text(before), Text(after), Text(got), conflicts)
		}
		now = random(r, 4).(object.Tree)
		all := Text([]any{before, after, now})
		got, conflicts = Undo(before, after, now, true)
		if Text([]any{before, after, now}) != all {
			t.Fatalf("seed %d: the undo changed its arguments", seed)
		}
		if kept, _ := Undo(before, after, now, false); len(conflicts) == 0 && !object.Equal(kept, got) {
			t.Fatalf("seed %d: without a conflict, force changed %s to %s", seed, Text(kept), Text(got))
		}
	}
}

// leaves returns the scalars of a value by their paths.
func leaves(out map[string]string, path string, v any) map[string]string {
	switch v := v.(type) {
	case object.Tree:
		for key, e := range v {
			leaves(out, path+"."+key, e)
		}
	case []any:
		for _, e := range v {
			leaves(out, path+keyText([]string{"name"}, e), e)
		}
	default:
		out[path] = Text(v)
	}
	return out
}

// flat returns the changes of the scalars of a blamed value by their paths.
func (b *blamed) flat(out map[string]string, path string) map[string]string {
	for key, e := range b.fields {
		e.flat(out, path+"."+key)
	}
	for _, e := range b.elements {
		e.flat(out, path+keyText([]string{"name"}, e.value))
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
		states := []object.Tree{random(r, 4).(object.Tree)}
		if seed%2 == 0 {
			changes = append(changes, Change{Revision: "0", Type: Added, Object: states[0]})
		}
		for i := range 5 {
			next := random(r, 4).(object.Tree)
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
		if want := marshal(without(states[5])); want != text.String() {
			t.Fatalf("seed %d: %s", seed, cmp.Diff(want, text.String()))
		}
	}
}

// Lines of YAML have the text of the object, in every form of a value.
func TestBlameYAML(t *testing.T) {
	o := tree(t, `{a: [], b: {}, c: [[1, {x: y}], [], {}, "- a"], "on": "yes", d: "a\n\n  b\n", e: [{f: [{g: 1}]}], 'x: y': {z: null}, h: ["a\nb\n"]}`)
	var text strings.Builder
	for _, l := range Blame([]Change{{Type: Added, Object: o}}) {
		text.WriteString(l.Text + "\n")
	}
	if want := marshal(o); want != text.String() {
		t.Error(cmp.Diff(want, text.String()))
	}
}
