// Package authn finds the user of a request.
//
// It knows credentials: a client certificate, a bearer token, or none. It does not know where
// certificates and tokens come from, or what users may do.
package authn

import (
	"errors"
	"net/http"
	"slices"

	"github.com/anykind/anykind/internal/object/request"
)

// An Authenticator finds out who is asking. ok is false if the request has no
// credentials that it knows; an error says that it has, and that they are not
// good. The error is for the log, not for the client.
type Authenticator interface {
	Authenticate(r *http.Request) (u *request.User, ok bool, err error)
}

// A Chain asks its Authenticators one after the other until one knows the user,
// who is then in the group of all who are known. Who brings only credentials that are
// not good is nobody, and Authenticate returns an error.
type Chain []Authenticator

// Authenticate implements Authenticator.
func (c Chain) Authenticate(r *http.Request) (*request.User, bool, error) {
	var errs []error
	for _, a := range c {
		u, ok, err := a.Authenticate(r)
		switch {
		case err != nil:
			errs = append(errs, err)
		case ok:
			return known(u), true, nil
		}
	}
	return nil, false, errors.Join(errs...)
}

// known adds the group of those who are known.
func known(u *request.User) *request.User {
	if u.Name == request.Anonymous || u.In(request.Authenticated) || u.In(request.Unauthenticated) {
		return u
	}
	v := *u
	v.Groups = append(slices.Clip(u.Groups), request.Authenticated)
	return &v
}
