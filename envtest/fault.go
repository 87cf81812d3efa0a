package envtest

import (
	"net/http"

	"github.com/anykind/anykind/internal/server/fault"
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
const Always = fault.Always

// An Effect changes the handling of requests. next is the handler of the server. The context of a
// request ends when its client disconnects.
type Effect func(next http.Handler) http.Handler

// An Injected fault is an active one.
type Injected struct{ fault *fault.Injected }

// Inject activates a fault. If several faults select a request, only the first injected one
// applies.
func (te *Environment) Inject(f Fault) *Injected {
	if te.server == nil {
		panic("envtest: Inject: " + errNotStarted.Error())
	}
	return &Injected{te.server.faults.Inject(fault.Fault{Match: f.match, Skip: f.Skip, Times: f.Times, Effect: f.Effect})}
}

// CrashAfter calls a function after the nth of the selected requests was executed, and closes its connection without a
// response. The function stops the program of the test, for example by canceling its context. It must not wait for the
// program: the program may wait for the response.
func (te *Environment) CrashAfter(n int, of Requests, crash func()) *Injected {
	return te.Inject(Fault{Requests: of, Skip: n - 1, Effect: fault.Crash(crash)})
}

// Count returns the number of affected requests.
func (i *Injected) Count() int {
	_, affected := i.fault.Counts()
	return affected
}

// Remove deactivates the fault, and releases events that HoldEvents holds back.
func (i *Injected) Remove() { i.fault.Remove() }
