package watchcache

import (
	"iter"
	"slices"
	"sort"
	"sync"
	"time"
)

const (
	// maxKept and keepFor limit the older snapshots of a resource that are kept for paged lists.
	maxKept = 8
	keepFor = time.Minute
)

// Snapshot is a resource at one revision of the store. It is immutable, and safe for concurrent use.
type Snapshot struct {
	tree     *tree
	revision int64
	indexes  sync.Map // *Index by the key of the Indexer
}

// Revision returns which state of the store the snapshot is of.
func (s *Snapshot) Revision() int64 { return s.revision }

// Get returns the object with the key, nil if there is none.
func (s *Snapshot) Get(key string) *Object {
	o, _ := s.tree.Get(key)
	return o
}

// Scan yields the objects with the prefix, see Resource, whose keys are greater
// than after, in order of their keys. An empty prefix is that of the resource,
// an empty after is before all.
func (s *Snapshot) Scan(prefix, after string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		s.tree.Ascend(max(prefix, after), func(key string, o *Object) bool {
			if key == after {
				return true
			}
			return within(prefix, key) && yield(o)
		})
	}
}

// Len returns the number of objects that Scan yields, without visiting them.
func (s *Snapshot) Len(prefix, after string) int {
	from, to := s.rank(prefix), s.tree.Len()
	if after >= prefix && after != "" {
		from = s.rank(after + "\x00")
	}
	if n := len(prefix); n > 0 {
		if prefix[n-1] == '/' {
			to = s.rank(prefix[:n-1] + string(rune('/'+1)))
		} else {
			to = s.rank(prefix + "\x00")
		}
	}
	return max(0, to-from)
}

// rank returns the number of keys less than key.
func (s *Snapshot) rank(key string) int {
	return sort.Search(s.tree.Len(), func(i int) bool {
		k, _, _ := s.tree.GetAt(i)
		return k >= key
	})
}

// current returns the present snapshot. It needs s.mu and a loaded resource.
func (s *state) current(c *Cache) *Snapshot {
	if s.snapshot == nil {
		s.snapshot = s.tree.Copy()
	}
	return &Snapshot{tree: s.snapshot, revision: s.view(c)}
}

// older returns the source of the snapshot at revision, which is before current: a kept snapshot;
// current, if there were no events since; a copy of the tree and the events to revert in it; or nil if
// the history does not reach so far. It needs s.mu and a loaded resource.
func (s *state) older(revision int64, current *Snapshot) (*Snapshot, []*Event) {
	if kept := s.kept.find(revision); kept != nil {
		return kept, nil
	}
	if revision < s.history.floor {
		return nil, nil
	}
	undo := s.history.after(revision)
	if len(undo) == 0 {
		return current, nil
	}
	return &Snapshot{tree: s.tree.Copy(), revision: revision}, slices.Clone(undo)
}

// revert undoes events in t.
func revert(t *tree, events []*Event) {
	for _, e := range slices.Backward(events) {
		if e.Prev != nil {
			t.Set(e.Prev.Key, e.Prev)
		} else {
			t.Delete(e.Object.Key)
		}
	}
}

// keptSnapshots are recently used older snapshots, the last used last.
type keptSnapshots struct{ list []keptSnapshot }

type keptSnapshot struct {
	*Snapshot
	used time.Time
}

func (k *keptSnapshots) any() bool { return len(k.list) > 0 }

func (k *keptSnapshots) find(revision int64) *Snapshot {
	for _, s := range k.list {
		if s.revision == revision {
			return s.Snapshot
		}
	}
	return nil
}

// add adds a snapshot that was used now.
func (k *keptSnapshots) add(s *Snapshot) {
	now := time.Now()
	k.expire(now)
	k.list = slices.DeleteFunc(k.list, func(o keptSnapshot) bool { return o.revision == s.revision })
	if len(k.list) == maxKept {
		k.list = slices.Delete(k.list, 0, 1)
	}
	k.list = append(k.list, keptSnapshot{s, now})
}

// expire drops unused snapshots.
func (k *keptSnapshots) expire(now time.Time) {
	for len(k.list) > 0 && now.Sub(k.list[0].used) > keepFor {
		k.list = slices.Delete(k.list, 0, 1)
	}
}
