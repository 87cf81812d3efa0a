// Package watchcache keeps stored objects in memory, ready to serve, and follows the one
// feed of the backend.
//
// A Resource is all objects under one storage prefix. It costs nothing until its first use,
// which loads it. From then on it is a copy-on-write tree that the feed updates, with a
// bounded history of recent events. A Snapshot is immutable and free. A Watcher is a position
// in the history. All revisions are those of the store: a resource without changes advances
// with all others.
//
// The package knows keys, stored bytes and the header of an object. It does not know schemas,
// selectors, or how clients see an object. It keeps what others compute from an object beside
// the object, without knowing what it is.
package watchcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/anykind/anykind/internal/store/kv"
)

var (
	// ErrGone says that the resource was forgotten.
	ErrGone = errors.New("the resource is no longer served")
	// ErrStopped says that the cache no longer follows the store.
	ErrStopped = errors.New("the watch cache has stopped")
)

// Options of a Cache. The zero value is for production.
type Options struct {
	Logger *slog.Logger // slog.Default if nil

	// Prefix is what all keys of the store that are of interest start with; ""
	// follows every key.
	Prefix string

	// Undone is the newest revision of a past that the store was put back from. A
	// watch that goes on from a part of it that has not happened again is too late:
	// what it was told need not be so.
	Undone int64

	// HistoryEvents and HistoryBytes bound the events kept of each resource, and
	// TotalHistoryBytes those of all of them. What is older is read from the
	// backend. Zero is 10,000 events, 8 MiB, and 64 MiB.
	HistoryEvents     int
	HistoryBytes      int64
	TotalHistoryBytes int64
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.HistoryEvents <= 0 {
		o.HistoryEvents = 10_000
	}
	if o.HistoryBytes <= 0 {
		o.HistoryBytes = 8 << 20
	}
	if o.TotalHistoryBytes <= 0 {
		o.TotalHistoryBytes = 64 << 20
	}
	return o
}

// Cache is the objects of a store, as far as anyone has asked for them.
//
// Locks: mu before state.mu; followers' own before waiting's, which is taken last.
type Cache struct {
	backend kv.Backend
	options Options

	revision  atomic.Int64 // how far the feed was applied; 0 before Run
	waiting   waiters
	recorded  atomic.Int64 // bytes in all histories
	feed      feed
	followers followers
	watchers  atomic.Int64 // that are not closed

	mu     sync.RWMutex
	states map[string]*state
	run    context.Context // of Run, nil before
	ended  bool            // Run has returned
	loads  sync.WaitGroup

	stopped chan struct{} // closed when Run has returned
	why     error         // ErrStopped, with what Run has returned; set before that
}

// New returns a cache of what b holds. Nothing can be read from it until Run
// runs.
func New(b kv.Backend, o Options) *Cache {
	return &Cache{
		backend:   b,
		options:   o.withDefaults(),
		states:    map[string]*state{},
		followers: followers{all: map[*kv.Queue]bool{}},
		stopped:   make(chan struct{}),
	}
}

// Revision returns how far the feed was applied: everything at or below it can
// be read. It is 0 before the cache runs, and never decreases.
func (c *Cache) Revision() int64 { return c.revision.Load() }

// Quiet reports whether all Watchers wait for something to happen: each was asked for what is next,
// and there is nothing.
func (c *Cache) Quiet() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	open, waiting := c.watchers.Load(), 0
	for _, s := range c.states {
		s.mu.Lock()
		for _, g := range s.groups {
			waiting += g.waiting
		}
		s.mu.Unlock()
	}
	return int64(waiting) == open
}

// Fresh waits for everything that was acknowledged, by anyone, before the call.
// It returns a revision that includes it.
func (c *Cache) Fresh(ctx context.Context) (int64, error) {
	revision, err := c.backend.Revision(ctx)
	if err != nil {
		return 0, err
	}
	return revision, c.Wait(ctx, revision)
}

// Resource returns the resource of a storage prefix, which ends in '/'. A
// resource that is never used costs nothing, and one may be asked for any number
// of times.
func (c *Cache) Resource(prefix string) *Resource {
	return &Resource{cache: c, prefix: prefix}
}

// Forget drops what is held of a resource. Its watchers are told what the cache has
// seen up to now, and end with ErrGone. Using the resource again loads it again.
func (c *Cache) Forget(prefix string) {
	wake(c.forget(prefix))
}

func (c *Cache) forget(prefix string) []*group {
	// The feed must not go on without the resource before it is marked: its
	// watchers would take the cache's progress for their own.
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[prefix]
	if s == nil {
		return nil
	}
	delete(c.states, prefix)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	return s.reset(c)
}

// state returns what is held of a resource, made if there is none.
func (c *Cache) state(prefix string) *state {
	c.mu.RLock()
	s := c.states[prefix]
	c.mu.RUnlock()
	if s != nil {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.states[prefix]; s == nil {
		s = &state{prefix: prefix}
		c.states[prefix] = s
	}
	return s
}

// begin makes ctx the life of the cache.
func (c *Cache) begin(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil {
		return errors.New("a watch cache runs once")
	}
	c.run = ctx
	return nil
}

// end cancels what is under way, lets nobody wait for what will not come, and says
// why.
func (c *Cache) end(cancel func(), failed error) {
	c.mu.Lock()
	c.ended = true
	c.why = ErrStopped
	if failed != nil {
		c.why = fmt.Errorf("%w: %w", ErrStopped, failed)
	}
	c.mu.Unlock()
	cancel()
	close(c.stopped)
	c.skip(c.Revision(), c.why)
	c.loads.Wait()
}

// stopping is why the cache stops, as far as it is known.
func (c *Cache) stopping() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.why == nil {
		return ErrStopped
	}
	return c.why
}
