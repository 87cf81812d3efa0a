package schema

import (
	"runtime"
	"testing"
)

// Kinds with the same schema have one program, which is as good for each of them.
// What nobody uses any more is not kept.
func TestShared(t *testing.T) {
	const one, other = `{"type":"object","properties":{"spec":{"type":"object"}}}`, `{"type":"object"}`
	shared := &Shared{}
	reads := 0
	stored := func(data string, kind Kind) *Schema {
		return Stored(NewSource(func() ([]byte, error) { reads++; return []byte(data), nil }), kind, shared)
	}
	otherKind := testKind
	otherKind.Group = "example.org"
	a, b, c := stored(one, testKind), stored(one, otherKind), stored(other, testKind)
	if reads > 0 {
		t.Error("read before it was needed")
	}
	for _, s := range []*Schema{a, b, c} {
		obj := map[string]any{"spec": map[string]any{"x": int64(1)}}
		if removed := s.Prune(obj); len(removed) != 1 {
			t.Errorf("removed %v", removed)
		}
	}
	if a.must().root != b.must().root || a.must().root == c.must().root || shared.Len() != 2 {
		t.Errorf("%d programs, want one for each JSON", shared.Len())
	}
	a.Drop()
	if b.DropIdle(); !b.Compiled() {
		t.Error("dropped although it was used")
	}
	if b.DropIdle(); b.Compiled() {
		t.Error("kept although it was not used")
	}
	for i := 0; shared.Len() != 1; i++ {
		if i == 100 {
			t.Fatalf("%d programs are kept, want 1", shared.Len())
		}
		runtime.GC()
		runtime.Gosched()
	}
	a.Prune(map[string]any{})
	runtime.KeepAlive(c)
}

// What is in a schema is read once for all who need it at the same time, and is not
// kept for those who come later.
func TestSourceIsReadOnce(t *testing.T) {
	reads := 0
	source := NewSource(func() ([]byte, error) { reads++; return []byte(`{"type":"object"}`), nil })
	one, err := source.Props()
	if err != nil || one.Type != "object" {
		t.Fatal(one, err)
	}
	if again, err := source.Props(); err != nil || again != one || reads != 1 {
		t.Errorf("read %d times, %v", reads, err)
	}
	runtime.KeepAlive(one)
	for range 100 {
		runtime.GC()
		if _, err := source.Props(); err != nil {
			t.Fatal(err)
		}
		if reads > 1 {
			return
		}
	}
	t.Error("what was read is kept although nobody uses it")
}

// A version without a schema keeps what it is given.
func TestStoredNothing(t *testing.T) {
	s := Stored(NewSource(func() ([]byte, error) { return nil, nil }), Kind{PreserveUnknownFields: true}, &Shared{})
	if removed := s.Prune(map[string]any{"spec": "x"}); len(removed) > 0 {
		t.Errorf("removed %v", removed)
	}
}
