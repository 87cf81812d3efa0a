package watch

import (
	"slices"
	"strings"
	"testing"
)

// at returns a line of the log, and see an event for it.
func at(revision int64, name, label string) write {
	k := key{0, "default", name}
	if label == "-" {
		return write{revision, k, nil}
	}
	return write{revision, k, &state{"uid-" + name, label, name + label, revision}}
}

func see(what string, revision int64, name, label string) observation {
	return observation{what: what, revision: revision, key: key{0, "default", name},
		state: state{"uid-" + name, label, name + label, revision}}
}

func mark(revision int64, last bool) observation {
	return observation{what: bookmark, revision: revision, last: last}
}

// The checker accepts correct watches and finds each kind of violation.
func TestChecker(t *testing.T) {
	log := []write{at(1, "a", "x"), at(2, "b", "y"), at(3, "a", "y"), at(5, "b", "x"), at(6, "a", "-"), at(9, "c", "x")}
	everything := selection{selects: func(string) bool { return true }}
	onlyX := selection{selects: func(l string) bool { return l == "x" }}
	all := []observation{
		see(added, 1, "a", "x"), see(added, 2, "b", "y"), see(modified, 3, "a", "y"),
		see(modified, 5, "b", "x"), see(gone, 6, "a", "y"), see(added, 9, "c", "x"),
	}
	x := []observation{see(added, 1, "a", "x"), see(gone, 3, "a", "x"), see(added, 5, "b", "x"), see(added, 9, "c", "x")}
	then := func(start []observation, more ...observation) []observation {
		return append(slices.Clone(start), more...)
	}
	for _, tt := range []struct {
		name  string
		story story
		want  string // part of the error
	}{
		{"everything", story{of: everything, begins: fromRevision, events: all, whole: true}, ""},
		{"what enters and leaves", story{of: onlyX, begins: fromRevision, events: x, whole: true}, ""},
		{"from the middle", story{of: everything, begins: fromRevision, revision: 3, events: all[3:], whole: true}, ""},
		{"bookmarks", story{of: onlyX, begins: fromRevision, events: then(x[:1], mark(2, false), x[1], mark(4, false), x[2]), whole: false}, ""},
		{"a gap", story{of: everything, begins: fromRevision, events: then(all[:2], all[3:]...)}, "and not MODIFIED"},
		{"a gap in the end", story{of: everything, begins: fromRevision, events: all[:5], whole: true}, "ends before ADDED"},
		{"a duplicate", story{of: everything, begins: fromRevision, events: then(all[:2], all[1:]...)}, "and not MODIFIED"},
		{"a resume too early", story{of: everything, begins: fromRevision, revision: 3, events: all[2:]}, "and not MODIFIED"},
		{"another order", story{of: everything, begins: fromRevision, events: then(all[1:2], all[0])}, "and not ADDED"},
		{"what never was", story{of: everything, begins: fromRevision, revision: 9, events: all[5:]}, "knows nothing"},
		{"the wrong type", story{of: everything, begins: fromRevision, events: []observation{see(modified, 1, "a", "x")}}, "and not ADDED"},
		{"not told that it left", story{of: onlyX, begins: fromRevision, events: then(x[:1], x[2:]...)}, "and not DELETED"},
		{"a bookmark ahead", story{of: onlyX, begins: fromRevision, events: then(x[:1], mark(3, false), x[1])}, "a bookmark at 3 before DELETED"},
		{"a bookmark behind", story{of: onlyX, begins: fromRevision, events: then(x[:1], mark(0, false))}, "a bookmark at 0 after revision 1"},
		{"a list", story{of: everything, begins: fromList, revision: 3, items: []observation{see(added, 3, "a", "y"), see(added, 2, "b", "y")}, events: all[3:], whole: true}, ""},
		{"a list without", story{of: everything, begins: fromList, revision: 3, items: []observation{see(added, 3, "a", "y")}, events: all[3:]}, "1 objects of 2"},
		{"an old object in a list", story{of: everything, begins: fromList, revision: 3, items: []observation{see(added, 1, "a", "x")}}, "which was"},
		{"a list of before", story{of: everything, begins: fromList, revision: 3, floor: 4}, "older than what was acknowledged"},
		{"a streamed list", story{of: everything, begins: streamed, events: then([]observation{see(added, 3, "a", "y"), see(added, 2, "b", "y"), mark(4, true)}, all[3:]...), whole: true}, ""},
		{"a streamed list that ends too early", story{of: everything, begins: streamed, events: []observation{see(added, 3, "a", "y"), mark(4, true)}}, "1 objects of 2"},
		{"a streamed list without end", story{of: everything, begins: streamed, events: []observation{see(added, 3, "a", "y")}, whole: true}, "did not end"},
		{"from now", story{of: everything, begins: fromNow, floor: 3, events: then([]observation{see(added, 2, "b", "y"), see(added, 3, "a", "y")}, all[3:]...), whole: true}, ""},
		{"from now, of before", story{of: everything, begins: fromNow, floor: 5, events: then([]observation{see(added, 2, "b", "y"), see(added, 3, "a", "y")}, all[3:]...)}, "no moment"},
		{"from any time, of before", story{of: everything, begins: fromAny, events: then([]observation{see(added, 2, "b", "y"), see(added, 3, "a", "y")}, all[3:]...), whole: true}, ""},
		{"a part of what there is", story{of: everything, begins: fromNow, floor: 3, events: []observation{see(added, 2, "b", "y")}}, ""},
		{"no more than a part", story{of: everything, begins: fromNow, floor: 3, events: []observation{see(added, 2, "b", "y")}, whole: true}, "no moment"},
	} {
		err := tt.story.check(log, 9)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
