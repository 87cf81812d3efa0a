package envtest

import (
	"net/http"
	"sync"

	"github.com/anykind/anykind/internal/object/request"
)

// A Fault is a failure of some requests. Requests without permission do not count: the server rejects
// them as usual.
type Fault struct {
	// Requests selects the requests.
	Requests
	// Skip is the number of matching requests that are served normally first.
	Skip int
	// Times is the number of matching requests that fail then. Zero means one, Always means all.
	Times int
	// Effect is the kind of failure: Conflict(), Delay(time.Second), ...
	Effect Effect
}

// Always is the Times of a Fault without end.
const Always = -1

// An Effect wraps the server's handler of a request. The context of a request ends when its client
// disconnects.
type Effect func(next http.Handler) http.Handler

// An Injected is an injected Fault.
type Injected struct {
	fault   Fault
	all     *faults
	seen    int // matching requests
	count   int // failed requests
	removed bool
}

// faults are the faults of one server, in the order of injection.
type faults struct {
	mu  sync.Mutex
	all []*Injected
}

// Inject applies a fault to requests from now on. If several faults match a request, the first
// injected one applies, and the others do not count the request.
func (te *Environment) Inject(f Fault) *Injected {
	if te.server == nil {
		panic("envtest: Inject: " + errNotStarted.Error())
	}
	if f.Times == 0 {
		f.Times = 1
	}
	in := &te.server.faults
	in.mu.Lock()
	defer in.mu.Unlock()
	one := &Injected{fault: f, all: in}
	in.all = append(in.all, one)
	return one
}

// Count returns the number of requests that the fault has hit.
func (i *Injected) Count() int {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	return i.count
}

// Remove removes the fault.
func (i *Injected) Remove() {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	i.removed = true
}

// take returns the effect on a request, or nil.
func (f *faults) take(q *request.Request) Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.all {
		if i.removed || i.fault.Times != Always && i.count == i.fault.Times || !i.fault.match(q) {
			continue
		}
		if i.seen++; i.seen <= i.fault.Skip {
			return nil
		}
		i.count++
		return i.fault.Effect
	}
	return nil
}
