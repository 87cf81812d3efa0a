package fault

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/anykind/anykind/internal/object/request"
)

// Always is the Times of a Fault that never ends.
const Always = -1

// A Fault applies an Effect to selected requests.
type Fault struct {
	// Match selects requests. It must not call the Set.
	Match func(*request.Request) bool
	// Skip is the number of first requests without the fault.
	Skip int
	// Times is the number of requests with the fault. Zero is one; Always is all.
	Times int
	// Effect is the fault.
	Effect Effect
}

// An Injected fault is in a Set.
type Injected struct {
	fault   Fault
	in      *Set
	matched int // selected requests
	count   int // affected requests
	removed chan struct{}
}

// effect is the Effect of the fault. The context of its requests has the channel of removedOf.
func (i *Injected) effect(next http.Handler) http.Handler {
	affected := i.fault.Effect(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		affected.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), removedKey{}, (<-chan struct{})(i.removed))))
	})
}

// A Set has the faults of one server, in order of injection. The zero value is empty.
type Set struct {
	mu  sync.Mutex
	all []*Injected
}

// Inject activates a fault. If several faults select a request, only the first injected one
// applies.
func (s *Set) Inject(f Fault) *Injected {
	if f.Times == 0 {
		f.Times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &Injected{fault: f, in: s, removed: make(chan struct{})}
	s.all = append(s.all, one)
	return one
}

// Counts returns the number of selected requests while the fault was active, and of those that were affected.
func (i *Injected) Counts() (matched, affected int) {
	i.in.mu.Lock()
	defer i.in.mu.Unlock()
	return i.matched, i.count
}

// Remove deactivates the fault. A second call does nothing.
func (i *Injected) Remove() {
	i.in.mu.Lock()
	defer i.in.mu.Unlock()
	if at := slices.Index(i.in.all, i); at >= 0 {
		i.in.all = slices.Delete(i.in.all, at, at+1)
		close(i.removed)
	}
}

// Take counts a request, and returns its effect or nil.
func (s *Set) Take(q *request.Request) Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.all {
		if i.fault.Times != Always && i.count == i.fault.Times || !i.fault.Match(q) {
			continue
		}
		if i.matched++; i.matched <= i.fault.Skip {
			return nil
		}
		i.count++
		return i.effect
	}
	return nil
}

// Within applies the faults to the requests of a handler.
func (s *Set) Within(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if effect := s.Take(request.From(r.Context())); effect != nil {
			effect(next).ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
