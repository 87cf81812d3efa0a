package authn

import (
	"net/http"

	"github.com/anykind/anykind/internal/object/request"
)

var anonymous = &request.User{Name: request.Anonymous, Groups: []string{request.Unauthenticated}}

// Anonymous configures which requests are accepted without credentials.
type Anonymous struct {
	// Enabled accepts requests without credentials.
	Enabled bool
	// Paths limits them to exact paths; empty allows every path.
	Paths []string
}

// OrAnonymous returns an Authenticator that makes a request without credentials anonymous if the
// configuration allows it. A request with invalid credentials still fails.
func OrAnonymous(known Authenticator, anonymous Anonymous) Authenticator {
	if !anonymous.Enabled {
		return known
	}
	o := &orAnonymous{known: known}
	if len(anonymous.Paths) > 0 {
		o.paths = make(map[string]bool, len(anonymous.Paths))
		for _, path := range anonymous.Paths {
			o.paths[path] = true
		}
	}
	return o
}

type orAnonymous struct {
	known Authenticator
	paths map[string]bool // nil allows every path
}

func (o *orAnonymous) Authenticate(r *http.Request) (*request.User, bool, error) {
	u, ok, err := o.known.Authenticate(r)
	if ok || err != nil {
		return u, ok, err
	}
	if o.paths != nil && !o.paths[r.URL.Path] {
		return nil, false, nil
	}
	return anonymous, true, nil
}
