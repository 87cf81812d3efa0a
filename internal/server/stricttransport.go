package server

import (
	"net/http"
	"strings"
)

// strict sets Strict-Transport-Security, if the server is configured so.
func (s *Server) strict(next handler) handler {
	if len(s.options.StrictTransport) == 0 {
		return next
	}
	directives := []string{strings.Join(s.options.StrictTransport, "; ")}
	return func(x *exchange, r *http.Request) {
		x.Header()["Strict-Transport-Security"] = directives
		next(x, r)
	}
}
