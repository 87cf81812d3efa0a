package server

import (
	"math/rand/v2"
	"net/http"
)

// leaving ends the connections of some clients, so that they come back by another one: a load
// balancer sees connections, and those of HTTP/2 last. What is under way on the connection goes on,
// watches included; the client is told (GOAWAY) to ask for nothing more there.
func (s *Server) leaving(next handler) handler {
	if s.options.GoawayChance <= 0 {
		return next
	}
	return func(x *exchange, r *http.Request) {
		if r.ProtoMajor == 2 && rand.Float64() < s.options.GoawayChance {
			x.Header()["Connection"] = []string{"close"}
		}
		next(x, r)
	}
}
