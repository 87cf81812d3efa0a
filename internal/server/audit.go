package server

import (
	"errors"
	"net/http"

	"github.com/anykind/anykind/internal/object/status"
)

// errUnrecorded is the error of a request that must be audited and cannot be.
var errUnrecorded = errors.New("failed to store audit event")

// audited sends the audit events of an authenticated request.
func (s *Server) audited(next handler) handler {
	if s.options.Audit == nil {
		return next
	}
	return func(x *exchange, r *http.Request) {
		record := s.options.Audit.Begin(&x.Request, r, x.started)
		if record == nil {
			next(x, r)
			return
		}
		if !record.Received() {
			x.fail(r, status.Internal(errUnrecorded))
			return
		}
		x.Audit = record
		long := x.longRunning()
		if long {
			x.onHeader = record.Started
		}
		defer func() {
			reason := recover()
			switch {
			case reason == nil || reason == http.ErrAbortHandler: // the client has left, or must not take a part for the whole
				record.Complete(x.audited(), long)
			default:
				record.Panicked(reason)
			}
			if reason != nil {
				x.Audit, x.onHeader = nil, nil // the answer to a panic has no events
				panic(reason)
			}
		}()
		next(x, r)
	}
}

// auditFailure prepares the audit of a request that is rejected before its user is known: its only
// event is ResponseStarted. The event has the reason if the answer is no Status.
func (s *Server) auditFailure(x *exchange, r *http.Request, reason func() string) {
	if record := s.options.Audit.Begin(&x.Request, r, x.started); record != nil {
		record.Failed(reason())
		x.Audit, x.onHeader = record, record.Started
	}
}
