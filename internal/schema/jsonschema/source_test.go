package jsonschema

import (
	"runtime"
	"testing"
)

// A schema is decoded once for all concurrent users, and is not kept for later ones.
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
	t.Error("an unused schema is still in memory")
}
