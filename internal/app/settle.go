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

// Hooks let tests observe an App and inject failures. Nil ones are not called.
type Hooks struct {
	// Answer wraps the handler of authorized requests. The user is known by then.
	Answer func(http.Handler) http.Handler
	// Request is called at the start of every request. It returns a function to call after the
	// response.
	Request func(*http.Request, *request.Request) (answered func(code int))
	// Store wraps the store.
	Store func(kv.Backend) kv.Backend
	// Webhook is called before each call of an admission or conversion webhook, within its timeout.
	// An error fails the call.
	Webhook func(context.Context) error
	// Host is the name of the host, for the identity among servers of a store; empty for the
	// operating system's.
	Host string
}

// engines are the running controller engines, and the number of expected ones.
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

func (e *engines) caughtUp(revision int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for one := range e.all {
		if !one.CaughtUp(revision) {
			return false
		}
	}
	return len(e.all) >= e.expected
}

// settleLook is the polling interval of WaitIdle.
const settleLook = time.Millisecond

// WaitIdle waits until the controllers of the App have handled all writes, and every watch has
// received all events. It cannot know whether a client of a watch still has work to do. It also
// returns when ctx ends.
func (a *App) WaitIdle(ctx context.Context) error {
	for {
		idle, err := a.caughtUp(ctx)
		if idle || err != nil {
			return err
		}
		select {
		case <-time.After(settleLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *App) caughtUp(ctx context.Context) (bool, error) {
	before, err := a.cache.Fresh(ctx)
	if c := a.options.copied; err == nil && c != nil && before == c.base {
		return a.cache.Quiet(), nil // its controllers wait for the first write
	}
	if err != nil || !a.engines.caughtUp(before) || !a.cache.Quiet() {
		return false, err
	}
	// An engine that was idle at its check may have new work from another one since. Such work is a
	// write, so the revision shows it.
	after, err := a.backend.Revision(ctx)
	return before == after && a.engines.caughtUp(before), err
}

// A Snapshot is the content of a store at one moment, for the start of other Apps. Results of checks
// on it are shared by these Apps.
type Snapshot struct {
	stored kv.State
	roles  atomic.Bool // it has all default roles
}

// Snapshot returns the content of the store, which must be in memory.
func (a *App) Snapshot() (*Snapshot, error) {
	store, ok := kv.As[*memkv.Store](a.backend)
	if !ok {
		return nil, errors.New("only a store in memory has snapshots")
	}
	stored, err := store.Snapshot(context.Background())
	return &Snapshot{stored: stored}, err
}

// state returns the content; nil for none.
func (s *Snapshot) state() kv.State {
	if s == nil {
		return nil
	}
	return s.stored
}

// hasRoles returns the shared flag for the presence of all default roles.
func (s *Snapshot) hasRoles() *atomic.Bool {
	if s == nil {
		return &atomic.Bool{}
	}
	return &s.roles
}

// Definitions returns all served kinds. Their compiled schemas stay in memory while the caller holds
// the set.
func (a *App) Definitions() *resource.Set { return a.catalog.Set() }
