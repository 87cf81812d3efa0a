package server

import (
	"net/http"
	"sync/atomic"

	"github.com/anykind/anykind/internal/request"
)

// A gate lets so many requests in at a time.
type gate struct {
	limit  int64
	inside atomic.Int64
}

func (g *gate) enter() bool {
	if g.inside.Add(1) > g.limit {
		g.inside.Add(-1)
		return false
	}
	return true
}

func (g *gate) leave() { g.inside.Add(-1) }

// Leave implements request.Place.
func (x *exchange) Leave() {
	if x.inside != nil {
		x.inside.leave()
		x.inside = nil
	}
}

// limited turns requests away when the server has enough to do. Watches, which
// mostly wait, health, which must say so, and administrators, who must be able to
// act, are let in.
func (s *Server) limited(next handler) handler {
	return func(x *exchange, r *http.Request) {
		if x.longRunning() || isHealth(x.Info.Path) {
			next(x, r)
			return
		}
		g := &s.writing
		if x.Info.IsReadOnly() {
			g = &s.reading
		}
		switch {
		case g.enter():
			x.inside, x.Place = g, x
			defer x.Leave()
			next(x, r)
		case x.User.In(request.Masters):
			next(x, r)
		default:
			x.Header().Set("Retry-After", "1")
			http.Error(x, "Too many requests, please try again later.", http.StatusTooManyRequests)
		}
	}
}
