package registry

import "testing"

func TestNoteBytes(t *testing.T) {
	for _, n := range []Note{
		{}, {User: "ann"}, {User: "ann", Verb: "patch", Manager: "kubectl-edit", Subresource: "status", Request: "id"}, {Request: "id"},
	} {
		if got := ParseNote(n.Bytes()); got != n {
			t.Errorf("%+v, want %+v", got, n)
		}
	}
	if got := ParseNote(nil); got != (Note{}) {
		t.Errorf("nothing: %+v", got)
	}
	if got := ParseNote([]byte("ann\x00patch")); got != (Note{User: "ann", Verb: "patch"}) {
		t.Errorf("a short note: %+v", got)
	}
	if got := ParseNote(Note{User: "a\x00b", Verb: "get"}.Bytes()); got != (Note{User: "ab", Verb: "get"}) {
		t.Errorf("a separator in a name: %+v", got)
	}
}
