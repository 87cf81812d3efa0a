package envtest

import (
	"net/http"
	"sync"

	"github.com/anykind/anykind/internal/object/request"
)

// A Fault applies an Effect to selected requests. Requests that the server rejects anyway are not
// affected and not counted.
type Fault struct {
	// Requests selects requests.
	Requests
	// Skip is the number of first requests without the fault.
	Skip int
	// Times is the number of requests with the fault. Zero is one; Always is all.
	Times int
	// Effect is the fault: Conflict(), Delay(time.Second), ...
	Effect Effect
}

// Always is the Times of a Fault that never ends.
const Always = -1

// An Effect changes the handling of requests. next is the handler of the server. The context of a
// request ends when its client disconnects.
type Effect func(next http.Handler) http.Handler

// An Injected fault is an active one.
type Injected struct {
	fault   Fault
	all     *faults
	seen    int // matching requests
	count   int // failed requests
	removed bool
}

// faults are the faults of one server, in order of injection.
type faults struct {
	mu  sync.Mutex
	all []*Injected
}

// Inject activates a fault. If several faults select a request, only the first injected one
// applies.
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

// Count returns the number of affected requests.
func (i *Injected) Count() int {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	return i.count
}

// Remove deactivates the fault.
func (i *Injected) Remove() {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	i.removed = true
}

// take returns the effect for a request, or nil.
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
