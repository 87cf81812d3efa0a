package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/anykind/anykind/internal/authn"
	"github.com/anykind/anykind/internal/authz"
	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/status"
)

var errPanic = errors.New("this request caused the server to panic; its log says where")

// authenticated finds out who is asking. HTTP/2 connections of those nobody
// knows serve one request: they are what makes flooding cheap.
func (s *Server) authenticated(next handler) handler {
	return func(x *exchange, r *http.Request) {
		for _, message := range authn.Warnings(r) {
			x.Header().Add("Warning", "299 - "+strconv.Quote(message))
		}
		user, ok, err := s.options.Authenticator.Authenticate(r)
		for _, message := range x.Warnings {
			x.Header().Add("Warning", "299 - "+strconv.Quote(message))
		}
		if err != nil || !ok {
			if err != nil {
				s.options.Log.Debug("authentication failed", "error", err, "auditID", x.AuditID)
			}
			leave(x, r)
			x.fail(r, status.Unauthorized())
			return
		}
		if user.Name == request.Anonymous {
			leave(x, r)
		}
		x.User = user
		// Nobody needs the credential from here on.
		r.Header.Del("Authorization")
		next(x, r)
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
		if err := authz.RefuseImpersonation(x.User, r.Header); err != nil {
			x.fail(r, err)
			return
		}
		next(x, r)
	}
}

// authorized asks whether they may.
func (s *Server) authorized(next handler) handler {
	return func(x *exchange, r *http.Request) {
		a := authz.Attributes{User: x.User, Info: x.Info}
		allowed, reason, err := s.options.Authorizer.Authorize(r.Context(), a)
		switch {
		case allowed:
			if x.longRunning() && !x.Info.IsWatch() {
				x.Allowed = s.allowed(a)
			}
			next(x, r)
		case err != nil:
			x.fail(r, status.Internal(err))
		default:
			x.Header().Set("X-Content-Type-Options", "nosniff")
			x.fail(r, authz.Forbidden(a, reason))
		}
	}
}

// allowed asks whether a user may do the same with another verb.
func (s *Server) allowed(a authz.Attributes) func(context.Context, string) error {
	return func(ctx context.Context, verb string) error {
		a.Info.Verb = verb
		allowed, reason, err := s.options.Authorizer.Authorize(ctx, a)
		switch {
		case allowed:
			return nil
		case err != nil:
			return status.Internal(err)
		default:
			return authz.Forbidden(a, reason)
		}
	}
}
