package policy

import (
	"sync"
	"sync/atomic"
	"time"
)

// idleAfter is the interval of the check for idle policies. An unused policy is dropped after one
// to two intervals.
const idleAfter = 5 * time.Minute

// A policy is one generation of a stored policy. It is compiled at its first use.
type policy[C any] struct {
	name, uid  string
	generation int64
	policySpec

	compile func(*policySpec) *C
	now     atomic.Pointer[C]
	used    atomic.Bool // since the last check for idle policies
	mu      sync.Mutex  // held during compilation, so that it runs once
}

// compiled returns the compiled expressions. It compiles them if needed.
func (p *policy[C]) compiled() *C {
	if !p.used.Load() {
		p.used.Store(true)
	}
	if c := p.now.Load(); c != nil {
		return c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.now.Load(); c != nil {
		return c
	}
	c := p.compile(&p.policySpec)
	p.now.Store(c)
	time.AfterFunc(idleAfter, p.dropIdle)
	return c
}

// dropIdle drops the compiled expressions if they were unused since the last check. Otherwise it
// schedules the next check.
func (p *policy[C]) dropIdle() {
	if p.used.Swap(false) {
		time.AfterFunc(idleAfter, p.dropIdle)
		return
	}
	p.now.Store(nil)
}
