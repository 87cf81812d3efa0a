package watchcache

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tidwall/btree"
)

// tree is objects by key. A copy is free until either is changed. Taking one is
// a change, so it needs the lock of who owns the tree, and is never taken of what
// a snapshot has handed out.
type tree = btree.Map[string, *Object]

// maxIdle is for how many changes a resource keeps space between batches.
const maxIdle = 16

// state is what the cache holds of one resource.
type state struct {
	prefix string

	// incoming is what the batch that is being applied has for the resource. It
	// belongs to the feed.
	incoming []change

	mu   sync.Mutex
	gone bool
	load *load // under way, if any
	// tree is every object of the resource, nil while it is not loaded. Snapshot
	// is a copy of it that nobody changes, nil when it is not of the same state.
	tree     *tree
	snapshot *tree
	// applied is the revision up to which events are in the tree. It may be ahead
	// of the feed, which then tells what is known already.
	applied int64
	// changed is applied for those who have no lock, and 0 while nothing is loaded.
	changed atomic.Int64
	history history
	kept    keptSnapshots
	indexes map[any]*keptIndex // that are in use
	groups  groups
	// portions are what was told last to watchers of a prefix, while any of them
	// is at it. New events make them forgotten.
	portions map[string]weak.Pointer[portion]
}

// A change is a write as the feed tells it.
type change struct {
	key      string
	object   *Object // nil when it was deleted
	revision int64
}

// view returns the revision of the store that the tree is the state of. It
// needs s.mu and a loaded resource.
//
// The feed applies a batch to one resource after the other and advances the
// cache's revision when it has been to all of them. A tree that has been changed
// is of the batch's revision already, for it has all that the batch has for it.
func (s *state) view(c *Cache) int64 { return max(s.applied, c.revision.Load()) }

// receive takes what a batch that reaches to revision has for the resource, and
// adds to woken who waits for it.
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

// reset drops what is known of the resource, so that its next user loads it, and
// returns who waits for its events. It needs s.mu. Snapshots stay what they are.
func (s *state) reset(c *Cache) []*group {
	seen := s.view(c)
	c.recorded.Add(-s.history.bytes)
	s.tree, s.snapshot, s.load = nil, nil, nil
	s.changed.Store(0)
	s.indexes, s.portions = nil, nil
	if s.gone {
		s.kept = keptSnapshots{} // but its watchers may have to be told the last of the history
	} else {
		s.history = history{}
	}
	return s.groups.all(seen)
}

// shrink forgets the older half of the history.
func (s *state) shrink(c *Cache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.history.bytes
	s.history.drop((len(s.history.events) + 1) / 2)
	c.recorded.Add(s.history.bytes - before)
}
