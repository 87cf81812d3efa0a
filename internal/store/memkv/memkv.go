// Package memkv is the storage contract in memory: its executable
// specification, and the backend of a server that keeps nothing.
//
// It knows every version of every key since the oldest kept revision, and the
// events since then in order. It does not know disks, and forgets everything
// when it is closed.
package memkv

import (
	"context"
	"sort"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/anykind/anykind/internal/store/kv"
)

// Options of a Store. The zero value works.
type Options struct {
	// MaxValueBytes limits the bytes of the values of a write; 0 for kv.DefaultMaxValueBytes.
	MaxValueBytes int
	// MaxPastBytes limits the bytes of the history; 0 for DefaultMaxPastBytes. The excess is compacted
	// at once.
	MaxPastBytes int64
	// From is the initial content of the store, with its revision; nil for none. That revision is the
	// oldest kept one.
	From *Snapshot
}

// DefaultMaxPastBytes is enough to resume watches and lists for as long as one can
// expect of a store without a disk.
const DefaultMaxPastBytes = 256 << 20

// Store is a kv.Backend.
type Store struct {
	options Options

	mu sync.RWMutex
	// keys holds, per key, its versions in order of their revisions. A version
	// without a value is a deletion.
	keys btree.Map[string, []version]
	// log holds every event that a compaction has not swept yet, one for each
	// revision, so that the event of revision r is at log[r-logStart].
	log      []kv.Event
	logStart int64
	newest   int64
	oldest   int64
	past     int64 // bytes that only the log keeps in memory
	closed   bool
	// changed is closed when newest or closed changes, and then replaced.
	changed chan struct{}

	// sweeping is held while a compaction drops unreachable data.
	sweeping sync.Mutex
}

type version struct {
	revision int64
	value    []byte
}

var _ kv.Backend = (*Store)(nil)

// New returns an empty store.
func New(options Options) *Store {
	if options.MaxValueBytes == 0 {
		options.MaxValueBytes = kv.DefaultMaxValueBytes
	}
	if options.MaxPastBytes == 0 {
		options.MaxPastBytes = DefaultMaxPastBytes
	}
	s := &Store{options: options, newest: 1, changed: make(chan struct{})}
	if options.From != nil {
		s.keys, s.newest = options.From.copy(), options.From.revision
	}
	s.oldest, s.logStart = s.newest, s.newest+1
	return s
}

// Get implements kv.Backend.
func (s *Store) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	if err := ctx.Err(); err != nil {
		return kv.Record{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	revision, err := s.resolve(revision)
	if err != nil {
		return kv.Record{}, err
	}
	versions, _ := s.keys.Get(key)
	v, ok := at(versions, revision)
	if !ok {
		return kv.Record{}, kv.ErrNotFound
	}
	return kv.Record{Key: key, Value: v.value, Revision: v.revision}, nil
}

// List implements kv.Backend.
func (s *Store) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	if err := ctx.Err(); err != nil {
		return kv.Page{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	revision, err := s.resolve(r.Revision)
	if err != nil {
		return kv.Page{}, err
	}
	page := kv.Page{Revision: revision}
	s.keys.Ascend(max(r.Prefix, r.After), func(key string, versions []version) bool {
		if !strings.HasPrefix(key, r.Prefix) {
			return false
		}
		v, ok := at(versions, revision)
		if !ok || (r.After != "" && key <= r.After) {
			return true
		}
		if r.Limit > 0 && len(page.Records) == r.Limit {
			page.More = true
			return false
		}
		page.Records = append(page.Records, kv.Record{Key: key, Value: v.value, Revision: v.revision})
		return true
	})
	return page, nil
}

// Count implements kv.Counter.
func (s *Store) Count(ctx context.Context, prefix string) (n int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	revision, err := s.resolve(kv.Latest)
	if err != nil {
		return 0, err
	}
	s.keys.Ascend(prefix, func(key string, versions []version) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		if _, ok := at(versions, revision); ok {
			n++
		}
		return true
	})
	return n, nil
}

// Commit implements kv.Backend.
func (s *Store) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if limit := s.options.MaxValueBytes; w.Size() > limit {
		return 0, &kv.TooLargeError{Size: w.Size(), Limit: limit}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, kv.ErrClosed
	}
	if err := s.check(&w); err != nil {
		return 0, err
	}
	revision := s.newest + 1
	for c := range w.All() {
		s.change(c, w.Note)
	}
	s.shed()
	s.wake()
	return revision, nil
}

// check returns the error that rejects w now, or nil.
func (s *Store) check(w *kv.Write) error {
	if err := s.expect(w.First()); err != nil {
		return err
	}
	for _, g := range w.Guards {
		versions, _ := s.keys.Get(g.Key)
		if v, _ := at(versions, s.newest); v.revision != g.Revision {
			return conflict(g.Key, g.Revision, v)
		}
	}
	for _, c := range w.With {
		if err := s.expect(c); err != nil {
			return err
		}
	}
	return nil
}

// expect returns the error that rejects a change now, or nil.
func (s *Store) expect(c kv.Change) error {
	versions, _ := s.keys.Get(c.Key)
	if v, _ := at(versions, s.newest); v.revision != c.Expect || !c.Possible() {
		return conflict(c.Key, c.Expect, v)
	}
	return nil
}

// change makes a change at a revision of its own.
func (s *Store) change(c kv.Change, note []byte) {
	versions, _ := s.keys.Get(c.Key)
	prev, _ := at(versions, s.newest)
	s.newest++
	s.keys.Set(c.Key, append(versions, version{s.newest, c.Value}))
	e := kv.Event{
		Key: c.Key, Revision: s.newest, Value: c.Value,
		Prev: prev.value, PrevRevision: prev.revision, Note: note,
	}
	s.log = append(s.log, e)
	s.past += pastBytes(e)
}

func conflict(key string, expected int64, actual version) error {
	return &kv.ConflictError{
		Key: key, Expected: expected,
		Actual: kv.Record{Key: key, Value: actual.value, Revision: actual.revision},
	}
}

// Revision implements kv.Backend.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.resolve(kv.Latest)
}

// Close implements kv.Backend.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.keys.Clear()
		s.log = nil
		s.wake()
	}
	return nil
}

// wake wakes all watches. It needs mu.
func (s *Store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// resolve returns the actual revision of a state if it is not compacted. It needs mu.
func (s *Store) resolve(revision int64) (int64, error) {
	if s.closed {
		return 0, kv.ErrClosed
	}
	return kv.Resolve(revision, s.oldest, s.newest)
}

// at returns the version that was current at revision, and whether there was one.
func at(versions []version, revision int64) (version, bool) {
	i := sort.Search(len(versions), func(i int) bool { return versions[i].revision > revision })
	if i == 0 || versions[i-1].value == nil {
		return version{}, false
	}
	return versions[i-1], true
}
