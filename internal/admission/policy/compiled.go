package policy

import (
	"sync"
	"sync/atomic"
	"time"
)

// idleAfter is how long a compiled policy waits for the next write: it is dropped when nobody has
// used it for as long, and before twice as long.
const idleAfter = 5 * time.Minute

// A policy is one that is stored, in one of its generations. It is compiled when it is needed.
type policy[C any] struct {
	name, uid  string
	generation int64
	policySpec

	compile func(*policySpec) *C
	now     atomic.Pointer[C]
	used    atomic.Bool // since it was last looked whether it is idle
	mu      sync.Mutex  // held while compiling, so that it is done once
}

// compiled returns the expressions of the policy.
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

// dropIdle drops what was compiled if nobody has used it, and otherwise looks again later.
func (p *policy[C]) dropIdle() {
	if p.used.Swap(false) {
		time.AfterFunc(idleAfter, p.dropIdle)
		return
	}
	p.now.Store(nil)
}
