package watchcache

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

const (
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
)

// feed is where the cache is in the backend's feed. It belongs to Run.
type feed struct {
	joined  bool  // the feed continues the loaded resources
	applied int64 // batches
	// touched and woken are buffers for applying a batch.
	touched []*state
	woken   []*group
}

// Run follows the store until ctx ends, and then returns nil. An interrupted feed resumes at its last
// revision. If the backend has compacted the events in between, every resource in use is loaded again,
// and its watchers end with *kv.CompactedError, because they miss events.
//
// Run returns an error when the backend is closed or damaged, and a *kv.RestoredError when it is at an
// older revision than before: a cache never goes back. It runs once.
func (c *Cache) Run(ctx context.Context) (failed error) {
	ctx, cancel := context.WithCancel(ctx)
	if err := c.begin(ctx); err != nil {
		cancel()
		return err
	}
	defer func() { c.end(cancel, failed) }()

	for retry := time.Duration(0); ; {
		applied := c.feed.applied
		err := c.follow(ctx)
		var compacted *kv.CompactedError
		var future *kv.FutureError
		var restored *kv.RestoredError
		var corrupt *kv.CorruptError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &compacted):
			c.feed.joined = false
		case errors.As(err, &future):
			return &kv.RestoredError{Was: c.Revision(), Now: future.Newest}
		case errors.Is(err, kv.ErrClosed), errors.As(err, &corrupt), errors.As(err, &restored):
			return err
		}
		c.options.Logger.Warn("the feed of the watch cache was interrupted", "revision", c.Revision(), "error", err)
		if c.feed.applied > applied {
			retry = 0
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return nil
		}
		retry = min(max(2*retry, minRetry), maxRetry)
	}
}

// follow applies the feed until it ends, and returns the reason.
func (c *Cache) follow(ctx context.Context) error {
	if !c.feed.joined {
		if err := c.join(ctx); err != nil {
			return err
		}
	}
	for batch, err := range c.backend.Watch(ctx, c.options.Prefix, c.Revision()) {
		if err != nil {
			return err
		}
		c.apply(batch)
		c.feed.applied++
	}
	return errors.New("it ended")
}

// join starts a new feed. Loaded resources are dropped, because it does not continue them. Each later
// load reads a state at least as new as the start of the feed.
func (c *Cache) join(ctx context.Context) error {
	revision, err := c.backend.Revision(ctx)
	if err != nil {
		return err
	}
	if revision < c.Revision() {
		return &kv.RestoredError{Was: c.Revision(), Now: revision}
	}
	var woken []*group
	c.mu.RLock()
	for _, s := range c.states {
		s.mu.Lock()
		woken = append(woken, s.reset(c)...)
		s.mu.Unlock()
	}
	c.mu.RUnlock()
	c.skip(revision, &kv.CompactedError{Asked: c.Revision(), Oldest: revision})
	c.feed.joined = true
	wake(woken)
	c.cool(func(*Object) bool { return true })
	return nil
}

// apply brings every resource to the end of a batch, then the cache.
func (c *Cache) apply(batch kv.Batch) {
	f := &c.feed
	c.route(batch.Events)
	for _, s := range f.touched {
		f.woken = s.receive(c, batch.Revision, f.woken)
	}
	c.tell(batch)
	wake(f.woken)
	clear(f.touched)
	clear(f.woken)
	f.touched, f.woken = f.touched[:0], f.woken[:0]
	if c.recorded.Load() > c.options.TotalHistoryBytes {
		c.shrink()
	}
	if c.again.Swap(false) {
		c.reread(isDoubtful)
	}
}

// route assigns each event to the resources in use whose prefix its key has, and drops the others.
// Prefixes end in '/', and keys have few of them.
func (c *Cache) route(events []kv.Event) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := range events {
		e := &events[i]
		ch := change{key: e.Key, revision: e.Revision, was: e.Prev}
		for end := range slashes(e.Key) {
			s := c.states[e.Key[:end]]
			if s == nil {
				continue
			}
			if e.Value != nil && ch.object == nil {
				ch.object = c.object(e.Key, e.Value, e.Revision)
			}
			if len(s.incoming) == 0 {
				c.feed.touched = append(c.feed.touched, s)
			}
			s.incoming = append(s.incoming, ch)
		}
	}
}

// shrink drops events of any resources until all histories are well below their limit.
func (c *Cache) shrink() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	bound := c.options.TotalHistoryBytes
	for _, s := range c.states {
		if s.shrink(c); c.recorded.Load() <= bound-bound/8 {
			return
		}
	}
}

// slashes yields the end of each directory of a key, the outermost first.
func slashes(key string) func(yield func(end int) bool) {
	return func(yield func(int) bool) {
		for end := 0; ; {
			i := strings.IndexByte(key[end:], '/')
			if i < 0 {
				return
			}
			if end += i + 1; !yield(end) {
				return
			}
		}
	}
}
