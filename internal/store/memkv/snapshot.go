package memkv

import (
	"context"
	"strings"

	"github.com/tidwall/btree"

	"github.com/anykind/anykind/internal/store/kv"
)

// A Snapshot is the content of a Store at one revision, without its history, and independent of the store. It
// is a kv.State: any number of stores may begin over it.
type Snapshot struct {
	keys     btree.Map[string, *version] // pointers, like other maps of the program: each type of a value would be compiled anew
	revision int64
}

var _ kv.State = (*Snapshot)(nil)

// Snapshot returns the present content of the store. It copies no values, and visits each key once.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	revision, err := s.resolve(kv.Latest)
	if err != nil {
		return nil, err
	}
	taken := &Snapshot{revision: revision}
	err = s.each(ctx, kv.Range{}, revision, func(r kv.Record) bool {
		taken.keys.Load(r.Key, &version{r.Revision, r.Value})
		return true
	})
	return taken, err
}

// NewSnapshot returns a Snapshot with records, whose keys differ, at a revision.
func NewSnapshot(records []kv.Record, revision int64) *Snapshot {
	made := &Snapshot{revision: revision}
	for _, r := range records {
		made.keys.Set(r.Key, &version{r.Revision, r.Value})
	}
	return made
}

// Revision implements kv.State: it is that of the store when the Snapshot was taken.
func (s *Snapshot) Revision() int64 { return s.revision }

// Get implements kv.State.
func (s *Snapshot) Get(_ context.Context, key string) (kv.Record, error) {
	v, ok := s.keys.Get(key)
	if !ok {
		return kv.Record{}, kv.ErrNotFound
	}
	return kv.Record{Key: key, Value: v.value, Revision: v.revision}, nil
}

// List implements kv.State.
func (s *Snapshot) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	page := kv.Page{Revision: s.revision}
	s.keys.Ascend(max(r.Prefix, r.After), func(key string, v *version) bool {
		if !strings.HasPrefix(key, r.Prefix) || ctx.Err() != nil {
			return false
		}
		if r.After != "" && key <= r.After {
			return true
		}
		if page.More = r.Limit > 0 && len(page.Records) == r.Limit; page.More {
			return false
		}
		page.Records = append(page.Records, kv.Record{Key: key, Value: v.value, Revision: v.revision})
		return true
	})
	return page, ctx.Err()
}

// Count implements kv.State.
func (s *Snapshot) Count(ctx context.Context, prefix string) (n int64, err error) {
	s.keys.Ascend(prefix, func(key string, _ *version) bool {
		if !strings.HasPrefix(key, prefix) || ctx.Err() != nil {
			return false
		}
		n++
		return true
	})
	return n, ctx.Err()
}
