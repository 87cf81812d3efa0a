package server

import (
	"math/rand/v2"
	"net/http"
)

// leaving closes the connections of a random share of clients, so that they reconnect: a load
// balancer distributes connections, and HTTP/2 connections are long-lived. GOAWAY asks the client
// to send no new request there. Requests in flight, watches included, go on.
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
