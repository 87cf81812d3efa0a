package server

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/request"
)

// Limits are the maximal numbers of requests in flight. The zero value has the defaults.
type Limits struct {
	// Reading and Writing limit reads and writes: 0 is the default, Unlimited is no limit.
	Reading, Writing int
	// Plain counts requests for Leases among the others.
	Plain bool
}

// Unlimited is no limit.
const Unlimited = -1

// The defaults of Limits.
const (
	DefaultReading = 400
	DefaultWriting = 200
)

// A gate limits the requests in flight.
type gate struct {
	limit  int64
	inside atomic.Int64
}

func (g *gate) enter() bool {
	if g.inside.Add(1) > g.limit && g.limit != Unlimited {
		g.inside.Add(-1)
		return false
	}
	return true
}

func (g *gate) leave() { g.inside.Add(-1) }

// most returns the limit for the /debug/ page.
func (g *gate) most() string {
	if g.limit == Unlimited {
		return "any number"
	}
	return strconv.FormatInt(g.limit, 10)
}

// A queue limits the requests in progress. The others wait.
type queue chan struct{}

// enter reports whether the request was admitted before its context ended. A nil queue admits
// all.
func (q queue) enter(ctx context.Context) bool {
	if q == nil {
		return true
	}
	select {
	case q <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (q queue) leave() {
	if q != nil {
		<-q
	}
}

// newQueue returns a queue for limit requests.
func newQueue(limit int) queue {
	if limit == Unlimited {
		return nil
	}
	return make(queue, limit)
}

// Release implements request.Place.
func (x *exchange) Release() {
	if x.inside != nil {
		x.inside.leave()
		x.inside = nil
	}
}

// limited rejects requests when the server has reached its limits. Watches, which mostly wait,
// health checks, and administrators are exempt. Requests for Leases have their own queue.
func (s *Server) limited(next handler) handler {
	return func(x *exchange, r *http.Request) {
		if x.longRunning() || isHealth(x.Info.Path) {
			next(x, r)
			return
		}
		if !s.options.Limits.Plain && renewsLease(&x.Request) {
			s.queued(next, x, r)
			return
		}
		g := &s.writing
		if x.Info.IsReadOnly() {
			g = &s.reading
		}
		switch {
		case g.enter():
			x.inside, x.Place = g, x
			defer x.Release()
			next(x, r)
		case x.User.In(request.Masters):
			next(x, r)
		default:
			s.metrics.rejected(x, r)
			x.Header().Set("Retry-After", "1")
			http.Error(x, "Too many requests, please try again later.", http.StatusTooManyRequests)
		}
	}
}

// queued answers a request for a Lease, after a wait if need be.
func (s *Server) queued(next handler, x *exchange, r *http.Request) {
	begun := time.Now()
	entered := s.renewing.enter(r.Context())
	x.Wait(time.Since(begun))
	if !entered {
		x.fail(r, r.Context().Err())
		return
	}
	x.inside, x.Place = s.renewing, x
	defer x.Release()
	next(x, r)
}

// renewsLease reports whether a request is part of a node heartbeat or of a leader election. If
// such requests fail, healthy nodes and leaders count as lost. Kubernetes' default FlowSchemas
// have their own priority levels for them.
func renewsLease(q *request.Request) bool {
	i := &q.Info
	if i.Resource != "leases" || i.Group != "coordination.k8s.io" || q.User.Name == request.Anonymous {
		return false
	}
	if i.Namespace != corev1.NamespaceNodeLease && i.Namespace != metav1.NamespaceSystem {
		return false
	}
	switch i.Verb {
	case "get", "create", "update", "patch":
		return true
	default:
		return false
	}
}
