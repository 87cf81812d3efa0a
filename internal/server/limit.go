package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/access/fairness"
	"github.com/anykind/anykind/internal/object/request"
)

// Limits are the maximal numbers of requests in flight, without a Dispatcher: 0 is the default,
// Unlimited is no limit.
type Limits struct{ Reading, Writing int }

// Unlimited is no limit.
const Unlimited = -1

// The defaults of Limits.
const (
	DefaultReading = 400
	DefaultWriting = 200
)

// Seats returns the sum of the limits, for a Dispatcher.
func (l Limits) Seats() int {
	return max(cmp.Or(l.Reading, DefaultReading), 0) + max(cmp.Or(l.Writing, DefaultWriting), 0)
}

// A limiter limits the requests in flight.
type limiter interface {
	// admit admits a request, after a wait if need be, and sets its place. Otherwise it returns the
	// seconds after which the client may try again.
	admit(x *exchange, r *http.Request) (retryAfter int64)
	// inFlight returns the numbers of requests that wait and that are served, each of those that
	// read and those that write.
	inFlight() (waiting, serving [2]int)
	// String describes the requests in flight for the /debug/ page.
	String() string
}

// RejectionDelay is the time before a request is rejected. Without it, clients that ignore Retry-After and repeat a request at
// once take the processor from all others.
const RejectionDelay = 100 * time.Millisecond

// maxDelayed limits the requests that wait for their rejection. Others are rejected at once.
const maxDelayed = 2000

// delay waits before a rejection.
func (s *Server) delay(ctx context.Context) {
	if s.delayed.Add(1) <= maxDelayed {
		select {
		case <-time.After(RejectionDelay):
		case <-ctx.Done():
		}
	}
	s.delayed.Add(-1)
}

// limited rejects requests when the server has reached its limits.
func (s *Server) limited(next handler) handler {
	return func(x *exchange, r *http.Request) {
		if x.longRunning() && !x.Info.IsWatch() {
			next(x, r)
			return
		}
		if after := s.limiter.admit(x, r); after > 0 {
			s.metrics.rejected(x, r)
			s.delay(r.Context())
			x.Header().Set("Retry-After", strconv.FormatInt(after, 10))
			http.Error(x, "Too many requests, please try again later.", http.StatusTooManyRequests)
			return
		}
		defer x.turn.End()
		defer x.Release()
		next(x, r)
	}
}

// Release implements request.Place.
func (x *exchange) Release() {
	if x.inside != nil {
		x.inside.Release()
		x.inside = nil
	}
}

// enter sets the place of an admitted request.
func (x *exchange) enter(p request.Place) { x.inside, x.Place = p, x }

// A room limits the requests in flight.
type room struct {
	limit  int64
	inside atomic.Int64
}

func (g *room) enter() bool {
	if g.inside.Add(1) > g.limit && g.limit != Unlimited {
		g.inside.Add(-1)
		return false
	}
	return true
}

// Release implements request.Place.
func (g *room) Release() { g.inside.Add(-1) }

func (g *room) String() string {
	if g.limit == Unlimited {
		return fmt.Sprint(g.inside.Load(), " of any number")
	}
	return fmt.Sprint(g.inside.Load(), " of ", g.limit)
}

// rooms are a limiter with a room for requests that read and one for those that write.
type rooms [2]room

func newRooms(l Limits) *rooms {
	return &rooms{{limit: int64(cmp.Or(l.Reading, DefaultReading))}, {limit: int64(cmp.Or(l.Writing, DefaultWriting))}}
}

// admit implements limiter. Watches, health checks and administrators are exempt: watches mostly wait.
func (g *rooms) admit(x *exchange, _ *http.Request) (retryAfter int64) {
	one := &g[1]
	if x.Info.IsReadOnly() {
		one = &g[0]
	}
	switch {
	case x.Info.IsWatch() || isHealth(x.Info.Path):
	case one.enter():
		x.enter(one)
	case !x.User.In(request.Masters):
		return 1
	}
	return 0
}

func (g *rooms) inFlight() (waiting, serving [2]int) {
	return waiting, [2]int{int(g[0].inside.Load()), int(g[1].inside.Load())}
}

func (g *rooms) String() string { return g[0].String() + " reading, " + g[1].String() + " writing" }

// fair is a limiter with the seats of priority levels.
type fair struct{ *fairness.Dispatcher }

// admit implements limiter.
func (f fair) admit(x *exchange, r *http.Request) (retryAfter int64) {
	if after := f.Admit(x.Header(), r, &x.Request, x.started, &x.turn); after > 0 {
		return after
	}
	x.enter(&x.turn)
	return 0
}

func (f fair) inFlight() (waiting, serving [2]int) { return f.InFlight() }

func (f fair) String() string {
	waiting, serving := f.InFlight()
	return fmt.Sprintf("%d reading, %d writing; %d and %d wait", serving[0], serving[1], waiting[0], waiting[1])
}
