package aggregate

import (
	"net/http"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
)

// Another server gets the uid of a user, and never that of a client's header.
func TestToldUID(t *testing.T) {
	for _, on := range []bool{true, false} {
		a := &Aggregator{options: Options{Gates: gate.With(map[gate.Name]bool{gate.RemoteRequestHeaderUID: on})}}
		h := http.Header{"X-Remote-Uid": {"of the client"}}
		a.tell(h, &request.User{Name: "u", UID: "1"})
		if got, want := h.Get("X-Remote-Uid"), map[bool]string{true: "1"}[on]; got != want {
			t.Errorf("gate %v: %q, want %q", on, got, want)
		}
	}
}
