package watchcache

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tidwall/btree"
)

// tree is objects by key. A copy is free until either is changed. Copying is a change, so it needs the
// lock of the tree's owner, and that of the cache for trees of snapshots.
type tree = btree.Map[string, *Object]

// maxIdle limits the capacity of a resource's buffer between batches.
const maxIdle = 16

// state is the cached state of one resource.
type state struct {
	prefix string

	// incoming has the changes of the present batch for the resource. It belongs to the feed.
	incoming []change

	mu   sync.Mutex
	gone bool
	load *load // under way, if any
	// tree has every object of the resource; it is nil while the resource is not loaded. Snapshot is
	// an immutable copy of it, nil if it is outdated.
	tree     *tree
	snapshot *tree
	bytes    int64 // of the values in tree, as JSON
	// applied is the revision up to which events are in the tree. It may be ahead of the feed, whose
	// events up to it are then skipped.
	applied int64
	// changed is applied for readers without the lock, and 0 while the resource is not loaded.
	changed atomic.Int64
	history history
	kept    keptSnapshots
	indexes map[any]*keptIndex // that are in use
	groups  groups
	// portions are the last portions for watchers by prefix, while any watcher uses them. New events
	// clear them.
	portions map[string]weak.Pointer[portion]
}

// A change is a write in the feed.
type change struct {
	key      string
	object   *Object // nil when it was deleted
	was      []byte  // the value before
	revision int64
}

// view returns the revision of the store that the tree is the state of. It
// needs s.mu and a loaded resource.
//
// The feed applies a batch to one resource after the other and advances the
// cache's revision when it has been to all of them. A tree that has been changed
// is of the batch's revision already, for it has all that the batch has for it.
func (s *state) view(c *Cache) int64 { return max(s.applied, c.revision.Load()) }

// receive takes the changes of a batch up to revision for the resource, and appends the groups to wake
// to woken.
func (s *state) receive(c *Cache, revision int64, woken []*group) []*group {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.tree != nil:
		woken = s.apply(c, s.incoming, revision, woken)
	case s.load != nil:
		s.load.changes = append(s.load.changes, s.incoming...)
		s.load.revision = revision
	}
	clear(s.incoming)
	if s.incoming = s.incoming[:0]; cap(s.incoming) > maxIdle {
		s.incoming = nil
	}
	return woken
}

// apply brings the tree to revision. It needs s.mu and a loaded resource.
func (s *state) apply(c *Cache, changes []change, revision int64, woken []*group) []*group {
	before := s.history.bytes
	if len(changes) > 0 {
		clear(s.portions)
	}
	for i := range changes {
		ch := &changes[i]
		if ch.revision <= s.applied {
			continue
		}
		var prev *Object
		if ch.object != nil {
			prev, _ = s.tree.Set(ch.key, ch.object)
		} else {
			prev, _ = s.tree.Delete(ch.key)
		}
		if ch.object == nil && prev == nil {
			continue
		}
		if prev != nil {
			prev.replaced(c, ch.was)
		}
		s.bytes += ch.object.size() - prev.size()
		s.snapshot = nil
		s.history.add(&Event{Object: ch.object, Prev: prev, Revision: ch.revision}, &c.options)
		woken = s.groups.match(s.prefix, ch.key, ch.revision-1, woken)
	}
	s.applied = max(s.applied, revision)
	s.changed.Store(s.applied)
	c.recorded.Add(s.history.bytes - before)
	if s.kept.any() {
		s.kept.expire(time.Now())
	}
	return woken
}

// reset drops the state of the resource, so that its next user loads it, and returns the groups that
// wait for its events. It needs s.mu. Snapshots stay valid.
func (s *state) reset(c *Cache) []*group {
	seen := s.view(c)
	c.recorded.Add(-s.history.bytes)
	s.tree, s.snapshot, s.load = nil, nil, nil
	s.changed.Store(0)
	s.indexes, s.portions = nil, nil
	if s.gone {
		s.kept = keptSnapshots{} // but its watchers may still need the last events
	} else {
		s.history = history{}
	}
	return s.groups.all(seen)
}

// ForgetPast drops the events and the older states of a resource. They are read from the backend again.
func (c *Cache) ForgetPast(prefix string) {
	c.mu.RLock()
	s := c.states[prefix]
	c.mu.RUnlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.recorded.Add(-s.history.bytes)
	s.history.drop(len(s.history.events))
	s.kept, s.portions = keptSnapshots{}, nil
}

// shrink forgets the older half of the history.
func (s *state) shrink(c *Cache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.history.bytes
	s.history.drop((len(s.history.events) + 1) / 2)
	c.recorded.Add(s.history.bytes - before)
}
