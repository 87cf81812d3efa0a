package schema

import (
	"runtime"
	"testing"

	"github.com/anykind/anykind/internal/schema/jsonschema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/schema/structural"
)

// Kinds with the same schema share one program. Unused programs are collected.
func TestShared(t *testing.T) {
	const one, other = `{"type":"object","properties":{"spec":{"type":"object"}}}`, `{"type":"object"}`
	shared := &structural.Shared{}
	reads := 0
	stored := func(data string, kind model.Kind) *Schema {
		return Stored(jsonschema.NewSource(func() ([]byte, error) { reads++; return []byte(data), nil }), kind, shared)
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
	if a.Shape() != b.Shape() || a.Shape() == c.Shape() || shared.Len() != 2 {
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

// A version without a schema keeps all fields.
func TestStoredNothing(t *testing.T) {
	s := Stored(jsonschema.NewSource(func() ([]byte, error) { return nil, nil }), model.Kind{PreserveUnknownFields: true}, &structural.Shared{})
	if removed := s.Prune(map[string]any{"spec": "x"}); len(removed) > 0 {
		t.Errorf("removed %v", removed)
	}
}
