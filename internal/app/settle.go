package app

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// Hooks are where tests see what an App does, and have it go wrong. Nil ones are not called.
type Hooks struct {
	// Answer wraps what answers requests that may be made; who asks is known by then.
	Answer func(http.Handler) http.Handler
	// Request is told of every request when it begins, and what it returns when it was answered.
	Request func(*http.Request, *request.Request) (answered func(code int))
	// Store wraps the store.
	Store func(kv.Backend) kv.Backend
	// Webhook is called before each call of an admission or conversion webhook, in the time that
	// the call has, and makes it fail by an error.
	Webhook func(context.Context) error
}

// engines are those that run, of which some are expected to.
type engines struct {
	mu       sync.Mutex
	expected int
	all      map[*controller.Engine]bool
}

func (e *engines) expect(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expected += n
}

func (e *engines) add(one *controller.Engine) (remove func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[*controller.Engine]bool{}
	}
	e.all[one] = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.all, one)
	}
}

func (e *engines) settled(revision int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for one := range e.all {
		if !one.Settled(revision) {
			return false
		}
	}
	return len(e.all) >= e.expected
}

// settleLook is how long Settle waits before it looks again.
const settleLook = time.Millisecond

// Settle returns when nothing is left to do: the controllers of the App have done what follows from
// all that was written, and every watch was given all of it. Whether somebody who was given it
// still has something to do, nobody here knows. Only the time in ctx ends it otherwise.
func (a *App) Settle(ctx context.Context) error {
	for {
		settled, err := a.settled(ctx)
		if settled || err != nil {
			return err
		}
		select {
		case <-time.After(settleLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *App) settled(ctx context.Context) (bool, error) {
	before, err := a.cache.Fresh(ctx)
	if err != nil || !a.engines.settled(before) || !a.cache.Quiet() {
		return false, err
	}
	// What was idle before others were looked at may have been given something by them since,
	// which is something that was written.
	after, err := a.backend.Revision(ctx)
	return before == after && a.engines.settled(before), err
}

// A Snapshot is what was stored at one moment, with which other Apps begin. What one of them finds
// out about it, the next need not.
type Snapshot struct {
	stored *memkv.Snapshot
	roles  atomic.Bool // the default ones are in it
}

// Snapshot returns what is stored, if that is in memory.
func (a *App) Snapshot() (*Snapshot, error) {
	store, ok := kv.As[*memkv.Store](a.backend)
	if !ok {
		return nil, errors.New("only a store in memory has snapshots")
	}
	stored, err := store.Snapshot()
	return &Snapshot{stored: stored}, err
}

func (s *Snapshot) objects() *memkv.Snapshot {
	if s == nil {
		return nil
	}
	return s.stored
}

// hasRoles tells whether the default roles are in it, as far as somebody has looked.
func (s *Snapshot) hasRoles() *atomic.Bool {
	if s == nil {
		return &atomic.Bool{}
	}
	return &s.roles
}

// Definitions are those of all kinds that are served now. What was compiled for them is kept as long
// as somebody has them.
func (a *App) Definitions() *resource.Set { return a.catalog.Set() }
