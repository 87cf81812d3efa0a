package aggregate

import (
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// The uid of a user goes to other servers unless its gate is off.
func TestToldUID(t *testing.T) {
	s := newStore(t)
	for _, on := range []bool{true, false} {
		a := New(Options{Cache: s.cache, Kinds: s.kinds, Gates: gate.With(map[gate.Name]bool{gate.RemoteRequestHeaderUID: on})})
		if a.front.UID != on {
			t.Errorf("gate %v: the uid goes along: %v", on, a.front.UID)
		}
	}
}
