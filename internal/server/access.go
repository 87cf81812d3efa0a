package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

var errPanic = errors.New("this request caused the server to panic; its log says where")

// authenticated authenticates the request. An HTTP/2 connection of an unauthenticated or
// anonymous client serves one request: such connections make flooding cheap.
func (s *Server) authenticated(next handler) handler {
	return func(x *exchange, r *http.Request) {
		for _, message := range authn.Warnings(r) {
			x.Header().Add("Warning", "299 - "+strconv.Quote(message))
		}
		begun := time.Now()
		user, ok, err := s.options.Authenticator.Authenticate(r)
		for _, message := range x.Warnings {
			x.Header().Add("Warning", "299 - "+strconv.Quote(message))
		}
		if err != nil || !ok {
			s.access.authenticated("", false, err, begun)
			if err != nil {
				s.options.Log.Debug("authentication failed", "error", err, "auditID", x.AuditID)
			}
			s.leave(x, r)
			s.auditFailure(x, r, func() string { return attempted(r) })
			x.fail(r, status.Unauthorized())
			return
		}
		if user.Name == request.Anonymous {
			s.leave(x, r)
		}
		s.access.authenticated(user.Name, true, nil, begun)
		x.User = user
		// No later filter needs the credential.
		r.Header.Del("Authorization")
		next(x, r)
	}
}

// attempted names the credentials of a request that failed to authenticate, in the words of Kubernetes.
func attempted(r *http.Request) string {
	var methods []string
	if _, _, ok := r.BasicAuth(); ok {
		methods = append(methods, "basic")
	}
	if scheme, _, ok := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " "); ok && strings.EqualFold(scheme, "bearer") {
		methods = append(methods, "bearer")
	}
	if strings.TrimSpace(r.URL.Query().Get("access_token")) != "" {
		methods = append(methods, "access_token")
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		methods = append(methods, "x509")
	}
	if len(methods) == 0 {
		return "Authentication failed, no credentials provided"
	}
	return "Authentication failed, attempted: " + strings.Join(methods, ", ")
}

// leave ends the HTTP/2 connection after the answer.
func (s *Server) leave(x *exchange, r *http.Request) {
	if r.ProtoMajor == 2 && s.options.Gates.On(gate.UnauthenticatedHTTP2DOSMitigation) {
		x.Header().Set("Connection", "close")
	}
}

// impersonating impersonates the user that the request names, if the caller is allowed to.
func (s *Server) impersonating(next handler) handler {
	return func(x *exchange, r *http.Request) {
		as, err := s.impersonator.As(r.Context(), r.Header, &authz.Attributes{User: x.User, Info: x.Info})
		if err != nil {
			x.refuse(r, err)
			return
		}
		if as != nil {
			x.Impersonator, x.User, x.Constraint = x.User, as.User, as.Constraint
		}
		next(x, r)
	}
}

// Keys of audit annotations about authorization.
const (
	decisionKey = "authorization.k8s.io/decision"
	reasonKey   = "authorization.k8s.io/reason"
)

// authorized authorizes the request. A request that an authorizer allows passes even if another
// authorizer failed.
func (s *Server) authorized(next handler) handler {
	return func(x *exchange, r *http.Request) {
		x.asked = access{authz.Attributes{User: x.User, Info: x.Info}, s.options.Authorizer}
		x.Access = &x.asked
		begun := time.Now()
		decision, reason, err := s.options.Authorizer.Authorize(r.Context(), &x.asked.Attributes)
		s.access.authorized(decision, err, begun)
		switch {
		case decision == authz.Allow:
			x.Annotate(decisionKey, "allow")
			x.Annotate(reasonKey, reason)
			next(x, r)
		case err != nil:
			x.Annotate(reasonKey, "internal error")
			s.options.Log.Error("authorization failed", "error", err, "auditID", x.AuditID)
			plainError(x, r, err)
		default:
			x.Annotate(decisionKey, "forbid")
			x.Annotate(reasonKey, reason)
			x.refuse(r, authz.Forbidden(&x.asked.Attributes, reason))
		}
	}
}

// refuse rejects a request that is not allowed. The message quotes the request, so nosniff keeps
// browsers from rendering it as HTML.
func (x *exchange) refuse(r *http.Request, err error) {
	x.Header().Set("X-Content-Type-Options", "nosniff")
	x.fail(r, err)
}

// plainError answers 500 as plain text, for errors that have no Status in Kubernetes.
func plainError(x *exchange, r *http.Request, err error) {
	message := fmt.Sprintf("Internal Server Error: %q: %v", r.RequestURI, err)
	http.Error(x, authz.Htmlless(message), http.StatusInternalServerError)
}

// understood rejects a request whose path has no kind or namespace where it needs one.
func understood(next handler) handler {
	return func(x *exchange, r *http.Request) {
		if x.Info.Incomplete {
			plainError(x, r, fmt.Errorf("failed to create RequestInfo: unable to determine kind and namespace from url, %v", r.URL))
			return
		}
		next(x, r)
	}
}

// An access is the attributes of a request and the authorizer that decides about them.
type access struct {
	authz.Attributes
	authorizer authz.Authorizer
}

// May implements request.Access.
func (a *access) May(ctx context.Context, verb string) error {
	other := a.Attributes
	other.Verb = verb
	return authz.Check(ctx, a.authorizer, &other)
}
