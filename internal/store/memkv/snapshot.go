package memkv

import (
	"sync"

	"github.com/tidwall/btree"

	"github.com/anykind/anykind/internal/store/kv"
)

// A Snapshot is the content of a Store at one revision, without its history. Any number of stores may
// begin with it, and they share unchanged data. Writes to one are invisible in the others.
type Snapshot struct {
	mu       sync.Mutex // a copy marks its source
	keys     *btree.Map[string, []version]
	revision int64
}

// Snapshot returns the present content of the store. It copies no values, and visits each key once.
func (s *Store) Snapshot() (*Snapshot, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	taken := &Snapshot{keys: &btree.Map[string, []version]{}, revision: s.newest}
	current := make([]version, 0, s.keys.Len())
	s.keys.Scan(func(key string, versions []version) bool {
		if v, ok := at(versions, s.newest); ok {
			current = append(current, v)
			last := len(current) - 1
			// Without spare capacity, so that a store that appends allocates a new slice.
			taken.keys.Load(key, current[last:last+1:last+1])
		}
		return true
	})
	return taken, nil
}

// Revision is that of the store when the Snapshot was taken.
func (s *Snapshot) Revision() int64 { return s.revision }

// copy returns the keys for a new store, in constant time.
func (s *Snapshot) copy() btree.Map[string, []version] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.keys.Copy()
}

// NewSnapshot returns a Snapshot with records, whose keys differ, at a revision.
func NewSnapshot(records []kv.Record, revision int64) *Snapshot {
	made := &Snapshot{keys: &btree.Map[string, []version]{}, revision: revision}
	versions := make([]version, len(records))
	for i, r := range records {
		versions[i] = version{r.Revision, r.Value}
		made.keys.Set(r.Key, versions[i:i+1:i+1])
	}
	return made
}
