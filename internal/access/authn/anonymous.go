package authn

import (
	"net/http"

	"github.com/anykind/anykind/internal/object/request"
)

var anonymous = &request.User{Name: request.Anonymous, Groups: []string{request.Unauthenticated}}

// Anonymous says which requests may come without credentials.
type Anonymous struct {
	// Enabled allows such requests at all.
	Enabled bool
	// Paths are where they may lead, to the letter; empty is everywhere.
	Paths []string
}

// OrAnonymous returns an Authenticator that takes for anonymous whom known does not know.
// Somebody with credentials that are not good stays nobody.
func OrAnonymous(known Authenticator, who Anonymous) Authenticator {
	if !who.Enabled {
		return known
	}
	o := &orAnonymous{known: known}
	if len(who.Paths) > 0 {
		o.paths = make(map[string]bool, len(who.Paths))
		for _, path := range who.Paths {
			o.paths[path] = true
		}
	}
	return o
}

type orAnonymous struct {
	known Authenticator
	paths map[string]bool // nil is everywhere
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
