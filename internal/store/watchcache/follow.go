package watchcache

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/anykind/anykind/internal/store/kv"
)

// errBehind ends the queue of a follower that does not keep up.
var errBehind = errors.New("too far behind")

// followers are the consumers of the whole feed, and its progress.
type followers struct {
	mu  sync.Mutex
	all map[*kv.Queue]bool
}

// tell delivers a batch to all followers and advances the cache. A follower with a full queue reads
// later events from the backend.
func (c *Cache) tell(batch kv.Batch) {
	f := &c.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	for q := range f.all {
		if !q.Put(batch) {
			q.End(errBehind)
			delete(f.all, q)
		}
	}
	c.advance(batch.Revision)
}

// skip advances the cache over missing events, and ends all followers.
func (c *Cache) skip(revision int64, why error) {
	f := &c.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	for q := range f.all {
		q.End(why)
	}
	clear(f.all)
	c.advance(revision)
}

// Follow yields the events after a revision for keys with a prefix, as a watch of the backend does,
// but from the feed of the cache. Earlier events, and those missed by a slow consumer, come from the
// backend. The error is yielded last: *kv.CompactedError if there is a gap, ErrStopped, the context's,
// or one of the backend's.
func (c *Cache) Follow(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		err := c.Wait(ctx, 1)
		for err == nil {
			if after, err = c.followFrom(ctx, prefix, after, yield); errors.Is(err, errBehind) {
				err = nil
			} else if err == nil {
				return // the consumer has left
			}
		}
		yield(kv.Batch{}, err)
	}
}

// followFrom follows while the consumer keeps up, and returns its revision.
func (c *Cache) followFrom(ctx context.Context, prefix string, after int64, yield func(kv.Batch, error) bool) (int64, error) {
	q := kv.NewQueue()
	begins := c.enter(q)
	defer c.leave(q)
	if after < begins {
		for batch, err := range c.backend.Watch(ctx, prefix, after) {
			if err != nil {
				return after, err
			}
			// Later events are in the queue.
			batch = part(batch, prefix, after, begins)
			if !yield(batch, nil) {
				return after, nil
			}
			if after = batch.Revision; after == begins {
				break
			}
		}
	}
	for {
		batch, err := q.Take(ctx)
		if err != nil {
			return after, err
		}
		if batch.Revision <= after {
			continue
		}
		batch = part(batch, prefix, after, batch.Revision)
		if !yield(batch, nil) {
			return after, nil
		}
		after = batch.Revision
	}
}

// part returns the events of a batch for keys with a prefix, after one revision and up to another.
func part(batch kv.Batch, prefix string, after, upTo int64) kv.Batch {
	some := kv.Batch{Events: batch.Events, Revision: min(batch.Revision, upTo)}
	other := func(e kv.Event) bool { return e.Revision <= after || e.Revision > upTo || !within(prefix, e.Key) }
	if slices.ContainsFunc(batch.Events, other) {
		some.Events = slices.DeleteFunc(slices.Clone(batch.Events), other)
	}
	return some
}

// enter has the feed fill a queue, and returns the revision after which it does.
func (c *Cache) enter(q *kv.Queue) int64 {
	f := &c.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[q] = true
	select {
	case <-c.stopped:
		q.End(c.why)
	default:
	}
	return c.Revision()
}

func (c *Cache) leave(q *kv.Queue) {
	f := &c.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, q)
}
