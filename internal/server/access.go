package server

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/anykind/anykind/internal/auth"
	"github.com/anykind/anykind/internal/status"
)

var errPanic = errors.New("this request caused the server to panic; its log says where")

// authenticated finds out who is asking. HTTP/2 connections of those nobody
// knows serve one request: they are what makes flooding cheap.
func (s *Server) authenticated(next handler) handler {
	return func(x *exchange, r *http.Request) {
		for _, message := range auth.Warnings(r) {
			x.Header().Add("Warning", "299 - "+strconv.Quote(message))
		}
		user, ok, err := s.options.Authenticator.Authenticate(r)
		if err != nil || !ok {
			if err != nil {
				s.options.Log.Debug("authentication failed", "error", err, "auditID", x.auditID)
			}
			leave(x, r)
			x.fail(r, status.Unauthorized())
			return
		}
		if user.Name == auth.Anonymous {
			leave(x, r)
		}
		x.user = user
		// Nobody needs the credential from here on.
		r.Header.Del("Authorization")
		next(x, r.WithContext(auth.WithUser(r.Context(), user)))
	}
}

// leave ends the HTTP/2 connection after the answer.
func leave(x *exchange, r *http.Request) {
	if r.ProtoMajor == 2 {
		x.Header().Set("Connection", "close")
	}
}

// asThemselves refuses what is asked in somebody else's name.
func asThemselves(next handler) handler {
	return func(x *exchange, r *http.Request) {
		if err := auth.RefuseImpersonation(x.user, r.Header); err != nil {
			x.fail(r, err)
			return
		}
		next(x, r)
	}
}

// authorized asks whether they may.
func (s *Server) authorized(next handler) handler {
	return func(x *exchange, r *http.Request) {
		a := auth.Attributes{
			User:        x.user,
			Verb:        x.info.Verb,
			Group:       x.info.Group,
			Version:     x.info.Version,
			Resource:    x.info.Resource,
			Subresource: x.info.Subresource,
			Namespace:   x.info.Namespace,
			Name:        x.info.Name,
			Path:        x.info.Path,
			IsResource:  x.info.IsResource,
		}
		allowed, reason, err := s.options.Authorizer.Authorize(r.Context(), a)
		switch {
		case allowed:
			next(x, r)
		case err != nil:
			x.fail(r, status.Internal(err))
		default:
			x.Header().Set("X-Content-Type-Options", "nosniff")
			x.fail(r, auth.Forbidden(a, reason))
		}
	}
}
