package front

import (
	"net/http"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
)

// Another server gets the uid of a user, and never that of a client's header.
func TestToldUID(t *testing.T) {
	for _, on := range []bool{true, false} {
		f := &Front{UID: on}
		h := http.Header{"X-Remote-Uid": {"of the client"}}
		f.Tell(h, &request.User{Name: "u", UID: "1"})
		if got, want := h.Get("X-Remote-Uid"), map[bool]string{true: "1"}[on]; got != want {
			t.Errorf("UID %v: %q, want %q", on, got, want)
		}
	}
}

// escape encodes keys of extras into header names, and the receiver decodes them to the same
// keys.
func TestEscape(t *testing.T) {
	for key, want := range map[string]string{
		"scopes": "scopes", "a/b": "a%2Fb", "100%": "100%25", "a b\n": "a%20b%0A", "é": "%C3%A9", "!#$&'*+-.^_`|~": "!#$&'*+-.^_`|~",
	} {
		if got := escape(key); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
}
