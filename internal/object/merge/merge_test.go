package merge

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/objecttest"
)

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
		for _, d := range Compare(objecttest.Tree(t, tt.before), objecttest.Tree(t, tt.after)) {
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
			got, conflicts := Undo(objecttest.Tree(t, tt.before), objecttest.Tree(t, tt.after), objecttest.Tree(t, tt.now), force)
			if diff := cmp.Diff(objecttest.Tree(t, want), got); diff != "" {
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

// The undo of a change on the unchanged object gives the earlier object. After a later change of a separate
// field, it gives the earlier object with that field.
func TestUndoOfRandomChanges(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		before, after := objecttest.Value(r, 4).(object.Tree), objecttest.Value(r, 4).(object.Tree)
		got, conflicts := Undo(before, after, after, false)
		if !object.Equal(got, before) || len(conflicts) > 0 {
			t.Fatalf("seed %d: the undo of %s → %s gives %s, %v", seed, Text(before), Text(after), Text(got), conflicts)
		}
		now, want := object.CloneTree(after), object.CloneTree(before)
		now["other"], want["other"] = int64(1), int64(1)
		if got, conflicts = Undo(before, after, now, false); !object.Equal(got, want) || len(conflicts) > 0 {
			t.Fatalf("seed %d: the undo of %s → %s gives %s, %v", seed, Text(before), Text(after), Text(got), conflicts)
		}
		now = objecttest.Value(r, 4).(object.Tree)
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

func TestRepeat(t *testing.T) {
	for _, tt := range []struct{ name, before, after, now, want string }{
		{"a field", "{spec: {a: 1, b: 1}}", "{spec: {a: 2, b: 1}}", "{spec: {a: 1, b: 7}}", "{spec: {a: 2, b: 7}}"},
		{"a field that differs", "{spec: {a: 1}}", "{spec: {a: 2}}", "{spec: {a: 7}}", "{spec: {a: 2}}"},
		{"a removed field", "{spec: {a: 1, b: 1}}", "{spec: {b: 1}}", "{spec: {a: 7, c: 1}}", "{spec: {c: 1}}"},
		{"an element", "{c: [{name: p, v: 1}]}", "{c: [{name: p, v: 2}, {name: q}]}", "{c: [{name: r}, {name: p, v: 1}]}", "{c: [{name: r}, {name: p, v: 2}, {name: q}]}"},
		{"a list without keys", "{a: [1]}", "{a: [1, 2]}", "{a: [3, 4, 5]}", "{a: [1, 2]}"},
		{"the generation", "{metadata: {generation: 1}, a: 1}", "{metadata: {generation: 2}, a: 2}", "{metadata: {generation: 5, managedFields: [x]}, a: 1}", "{metadata: {generation: 6, managedFields: [x]}, a: 2}"},
		{"a status", "{metadata: {generation: 1}}", "{metadata: {generation: 1}, status: {n: 1}}", "{metadata: {generation: 5}}", "{metadata: {generation: 5}, status: {n: 1}}"},
		{"deletion", "{metadata: {uid: a}}", "{metadata: {uid: a, deletionTimestamp: x}}", "{metadata: {uid: b}}", "{metadata: {uid: b, deletionTimestamp: x}}"},
	} {
		got := Repeat(objecttest.Tree(t, tt.before), objecttest.Tree(t, tt.after), objecttest.Tree(t, tt.now))
		if want := objecttest.Tree(t, tt.want); !object.Equal(got, want) {
			t.Errorf("%s: %s, want %s", tt.name, Text(got), Text(want))
		}
	}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		before, after := objecttest.Value(r, 4).(object.Tree), objecttest.Value(r, 4).(object.Tree)
		if got := Repeat(before, after, before); !object.Equal(got, after) {
			t.Fatalf("seed %d: %s → %s repeated on the first one is %s", seed, Text(before), Text(after), Text(got))
		}
		now := objecttest.Value(r, 4).(object.Tree)
		all := Text([]any{before, after, now})
		Repeat(before, after, now)
		if Text([]any{before, after, now}) != all {
			t.Fatalf("seed %d: the arguments are changed", seed)
		}
	}
}
