// Package auth says who is asking, and whether they may.
//
// It knows requests by their credentials (a client certificate, a bearer token,
// nothing) and turns them into users; and it knows what Kubernetes lets users do
// before anyone has written a role. It does not know where certificates and
// tokens come from, nor what is behind a path.
package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// Names that mean something to Kubernetes.
const (
	Anonymous       = "system:anonymous"       // the user who did not say who they are
	Unauthenticated = "system:unauthenticated" // the group of that user
	Authenticated   = "system:authenticated"   // the group of all other users
	Masters         = "system:masters"         // the group that may do everything

	credentialID = "authentication.kubernetes.io/credential-id"
)

// A User is who is asking. Users are shared between requests and not changed.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// In reports whether the user is in a group.
func (u *User) In(group string) bool { return u != nil && slices.Contains(u.Groups, group) }

type userKey struct{}

// WithUser returns a context of a request by u.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns whose request the context is of, or nil.
func UserFrom(ctx context.Context) *User {
	u, _ := ctx.Value(userKey{}).(*User)
	return u
}

// An Authenticator finds out who is asking. ok is false if the request has no
// credentials that it knows; an error says that it has, and that they are not
// good. The error is for the log, not for the client. What proves who the user is
// may be removed from the request.
type Authenticator interface {
	Authenticate(r *http.Request) (u *User, ok bool, err error)
}

// A Chain asks its Authenticators one after the other until one knows the user,
// who is then in the group of all who are known. Who brings no credentials is
// anonymous; who brings only bad ones is nobody, and Authenticate returns an
// error.
type Chain []Authenticator

var anonymous = &User{Name: Anonymous, Groups: []string{Unauthenticated}}

// Authenticate implements Authenticator. ok is always true if there is no error.
func (c Chain) Authenticate(r *http.Request) (*User, bool, error) {
	var errs []error
	for _, a := range c {
		u, ok, err := a.Authenticate(r)
		switch {
		case err != nil:
			errs = append(errs, err)
		case ok:
			r.Header.Del("Authorization")
			return known(u), true, nil
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, false, err
	}
	return anonymous, true, nil
}

// known adds the group of those who are known.
func known(u *User) *User {
	if u.Name == Anonymous || u.In(Authenticated) || u.In(Unauthenticated) {
		return u
	}
	v := *u
	v.Groups = append(slices.Clip(u.Groups), Authenticated)
	return &v
}
