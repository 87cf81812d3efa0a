package server

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/internal/network/conn"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/server/console"
)

// filters returns the chain, outermost filter first.
func (s *Server) filters(h handler) handler {
	h = held(s.options.Hold, h)
	h = s.counted(h)
	h = s.stage("authorization", s.authorized(h))
	h = s.stage("priorityandfairness", s.limited(h))
	h = watching(h)
	h = s.stage("constrainedimpersonation", s.impersonating(h))
	h = s.stage("audit", s.audited(h))
	h = s.traced(h)
	h = s.stage("authentication", s.authenticated(h))
	h = public(s.options.Console, h)
	h = understood(h)
	h = s.timed(h)
	h = s.recovered(h)
	h = s.measured(h)
	h = s.strict(h)
	h = s.leaving(h)
	return identified(h)
}

// public serves the files of the console before authentication: a browser needs them to sign in.
func public(pages http.Handler, next handler) handler {
	if pages == nil {
		return next
	}
	return func(x *exchange, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, console.Root) {
			pages.ServeHTTP(x, r)
			return
		}
		next(x, r)
	}
}

// held rejects requests that have to wait.
func held(hold func(*request.Info) error, next handler) handler {
	if hold == nil {
		return next
	}
	return func(x *exchange, r *http.Request) {
		if err := hold(&x.Info); err != nil {
			x.fail(r, err)
			return
		}
		next(x, r)
	}
}

// identified gives the request an audit id, the client's own if it sent one, and forbids caching
// of the answer.
func identified(next handler) handler {
	return func(x *exchange, r *http.Request) {
		x.AuditID = r.Header.Get("Audit-Id")
		if x.AuditID == "" {
			x.AuditID = string(uuid.NewUUID())
		}
		h := x.Header()
		h["Audit-Id"] = []string{x.AuditID}
		h["Cache-Control"] = noCache
		next(x, r)
	}
}

// noCache is shared by all answers: headers are replaced, never appended to.
var noCache = []string{"no-cache, private"}

// measured reports the request to Options.Begun, even if it is aborted, and logs it for
// debugging.
func (s *Server) measured(next handler) handler {
	return func(x *exchange, r *http.Request) {
		answered := func(int) {}
		if begun := s.options.Begun; begun != nil {
			answered = begun(r, &x.Request)
		}
		defer func() {
			answered(x.code)
			if log := s.options.Log; log.Enabled(r.Context(), levelAccess) {
				log.LogAttrs(r.Context(), levelAccess, "request", x.attributes(r, time.Since(x.started))...)
			}
		}()
		next(x, r)
	}
}

// watching buffers the output of connections with several watches.
func watching(next handler) handler {
	return func(x *exchange, r *http.Request) {
		if x.Info.IsWatch() {
			defer conn.BeginWatch(r.Context())()
		}
		next(x, r)
	}
}

// recovered answers a panic with 500, so that only its request fails. If the answer had begun, it
// is cut off.
func (s *Server) recovered(next handler) handler {
	return func(x *exchange, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if reason == http.ErrAbortHandler {
				s.metrics.aborted(x, r)
				panic(reason)
			}
			s.options.Log.Error("a request caused a panic", "panic", reason, "method", r.Method,
				"path", r.URL.Path, "auditID", x.AuditID, "stack", string(debug.Stack()))
			if x.code != 0 {
				s.metrics.aborted(x, r)
				panic(http.ErrAbortHandler)
			}
			x.fail(r, status.Internal(errPanic))
		}()
		next(x, r)
	}
}
