// Package watchcache keeps stored objects in memory, ready to serve, and follows the one feed of the
// backend.
//
// A Resource is all objects under one storage prefix. It costs nothing until its first use, which
// loads it. From then on it is a copy-on-write tree that the feed updates, with a bounded history of
// recent events. A Snapshot is immutable and free. A Watcher is a position in the history. All
// revisions are those of the store: a resource without changes advances with all others.
//
// The header of an object is in memory: it selects and orders. The value of an object is there while it is hot, if the
// backend can load it again (kv.Loader), and otherwise always.
//
// The package knows keys, stored bytes and the header of an object. It does not know schemas,
// selectors, or how clients see an object. It caches data derived from an object beside the object,
// without knowing its meaning.
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
	// ErrGone means that the resource was forgotten.
	ErrGone = errors.New("the resource is no longer served")
	// ErrStopped means that the cache no longer follows the store.
	ErrStopped = errors.New("the watch cache has stopped")
)

// Options of a Cache. The zero value is for production.
type Options struct {
	Logger *slog.Logger // slog.Default if nil

	// Prefix is the common prefix of the followed keys; "" follows every key.
	Prefix string

	// Undone is the newest revision before the restore of a backup. A watch that resumes from a
	// revision that the restored store has not reached again is too late: its earlier events may be
	// invalid.
	Undone int64

	// Over is a cache of the store that this one is over, see memkv.Options.Over: resources begin with its
	// objects, so that both share them. Nil for none.
	Over *Cache
	// Base is the revision of the state that the store is over.
	Base int64

	// HotBytes limits the values in memory, if the store is a kv.Loader: others are loaded again when they
	// are read. Zero is 64 MiB. The values of any other store are all in memory.
	HotBytes int64

	// HistoryEvents and HistoryBytes limit the events kept of each resource, and TotalHistoryBytes
	// those of all resources. Older events are read from the backend. Zero is 10,000 events, 8 MiB,
	// and 64 MiB.
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
	if o.HotBytes <= 0 {
		o.HotBytes = 64 << 20
	}
	return o
}

// Cache has the objects of the resources of a store that were used.
//
// Locks: mu before state.mu; followers' own before waiting's. The locks of waiting and hot are taken last.
type Cache struct {
	backend kv.Backend
	options Options
	loader  kv.Loader // nil if the values are in memory
	hot     hot
	loading loading
	shapes  shapes

	revision  atomic.Int64 // revision of the feed; 0 before Run
	waiting   waiters
	recorded  atomic.Int64 // bytes in all histories
	feed      feed
	followers followers
	watchers  atomic.Int64 // that are not closed
	again     atomic.Bool  // the feed rereads after its next batch

	mu     sync.RWMutex
	states map[string]*state
	run    context.Context // of Run, nil before
	ended  bool            // Run has returned
	loads  sync.WaitGroup

	copying sync.Mutex // of trees of snapshots, by caches over this one

	stopped chan struct{} // closed when Run has returned
	why     error         // ErrStopped, with the result of Run; set before stopped is closed
}

// New returns a cache of b. Reads wait until Run runs.
func New(b kv.Backend, o Options) *Cache {
	o = o.withDefaults()
	c := &Cache{
		backend:   b,
		options:   o,
		loader:    kv.LoaderOf(b),
		hot:       hot{budget: o.HotBytes},
		states:    map[string]*state{},
		followers: followers{all: map[*kv.Queue]bool{}},
		stopped:   make(chan struct{}),
	}
	if c.loader != nil {
		c.shapes.cache = c
	}
	return c
}

// Revision returns the revision of the feed: everything at or below it is readable. It is 0 before
// Run, and never decreases.
func (c *Cache) Revision() int64 { return c.revision.Load() }

// Quiet reports whether all Watchers are waiting: each has a pending Next and no events.
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

// Fresh waits for all writes acknowledged before the call, also those through other servers. It
// returns a revision that includes them.
func (c *Cache) Fresh(ctx context.Context) (int64, error) {
	revision, err := c.backend.Revision(ctx)
	if err != nil {
		return 0, err
	}
	return revision, c.Wait(ctx, revision)
}

// Resource returns the resource of a storage prefix, which ends in '/'. An unused resource costs
// nothing.
func (c *Cache) Resource(prefix string) *Resource {
	return &Resource{cache: c, prefix: prefix}
}

// Size returns the number of objects of a resource and the size of their JSON. The number is -1 if the
// resource is not loaded.
func (c *Cache) Size(prefix string) (objects, bytes int64) {
	c.mu.RLock()
	s := c.states[prefix]
	c.mu.RUnlock()
	if s == nil {
		return -1, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree == nil {
		return -1, 0
	}
	return int64(s.tree.Len()), s.bytes
}

// Forget drops a resource from memory. Its watchers get the events up to now, and then ErrGone. The
// next use of the resource loads it again.
func (c *Cache) Forget(prefix string) {
	wake(c.forget(prefix))
	c.cool(func(o *Object) bool { return within(prefix, o.Key) })
}

// cool drops hot values of resources that are not in use any more.
func (c *Cache) cool(of func(*Object) bool) {
	if c.loader != nil {
		c.hot.forget(of)
	}
}

func (c *Cache) forget(prefix string) []*group {
	// The feed must not continue without the resource before it is marked: its watchers would take the
	// cache's progress for their own.
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

// state returns the state of a resource, and creates it if missing.
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

// begin sets the context of Run.
func (c *Cache) begin(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil {
		return errors.New("a watch cache runs once")
	}
	c.run = ctx
	return nil
}

// end cancels pending work and ends all waits with an error.
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

// stopping returns the reason for which the cache stops, as far as it is known.
func (c *Cache) stopping() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.why == nil {
		return ErrStopped
	}
	return c.why
}
