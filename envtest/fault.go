package envtest

import (
	"net/http"
	"sync"

	"github.com/anykind/anykind/internal/object/request"
)

// A Fault is what goes wrong with some requests: those that may be made. What the server refuses
// anyway is refused as ever, and not counted.
type Fault struct {
	// Requests are those that it may happen to.
	Requests
	// Skip is how many of them come first, and go well.
	Skip int
	// Times is how many of them it then happens to. Zero is one; Always is all.
	Times int
	// Effect is what happens: Conflict(), Delay(time.Second), ...
	Effect Effect
}

// Always is how often a Fault happens that never stops.
const Always = -1

// An Effect changes how requests are answered. next answers as the server does. The context of a
// request ends when its client has gone.
type Effect func(next http.Handler) http.Handler

// An Injected fault is one that may happen.
type Injected struct {
	fault   Fault
	all     *faults
	seen    int // requests that match
	count   int // that it happened to
	removed bool
}

// faults are those of one server, the first injected first.
type faults struct {
	mu  sync.Mutex
	all []*Injected
}

// Inject has a fault happen to requests from now on. If several could happen to a request, the one
// that was injected first does, and the others do not see the request.
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

// Count returns to how many requests the fault has happened.
func (i *Injected) Count() int {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	return i.count
}

// Remove has the fault happen to no more requests.
func (i *Injected) Remove() {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	i.removed = true
}

// take returns what happens to a request, or nil.
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
