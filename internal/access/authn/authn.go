// Package authn authenticates requests.
//
// It handles credentials: a client certificate, a bearer token, or none. It does not know the source
// of certificates and tokens, or the rights of users.
package authn

import (
	"errors"
	"net/http"
	"slices"

	"github.com/anykind/anykind/internal/object/request"
)

// An Authenticator authenticates requests. ok is false if the request has no credentials of its
// type. An error reports invalid credentials; it goes to the log, not to the client.
type Authenticator interface {
	Authenticate(r *http.Request) (u *request.User, ok bool, err error)
}

// A Chain tries its Authenticators in order. The first to recognize the user wins, and the user gets
// the group system:authenticated. If none does, Authenticate returns the errors of all.
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

// known adds the group system:authenticated.
func known(u *request.User) *request.User {
	if u.Name == request.Anonymous || u.In(request.Authenticated) || u.In(request.Unauthenticated) {
		return u
	}
	v := *u
	v.Groups = append(slices.Clip(u.Groups), request.Authenticated)
	return &v
}
