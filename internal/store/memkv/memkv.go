// Package memkv is the storage contract in memory: its executable
// specification, and the backend of a server that keeps nothing.
//
// It knows every version of every key since the oldest kept revision, and the
// events since then in order. A store may begin over a state of another store. The other store does not change
// by that. The package does not know disks, and forgets everything when it is closed.
package memkv

import (
	"context"
	"sort"
	"sync"

	"github.com/tidwall/btree"

	"github.com/anykind/anykind/internal/store/kv"
)

// Options of a Store. The zero value works.
type Options struct {
	// MaxValueBytes limits the bytes of the values of a write; 0 for kv.DefaultMaxValueBytes.
	MaxValueBytes int
	// MaxPastBytes limits the bytes of the history; 0 for DefaultMaxPastBytes. The excess is compacted
	// at once, except for kept states.
	MaxPastBytes int64
	// Over is the state that the store begins with; nil for none. Its revision is the oldest kept one. The
	// store holds only keys that were written since, and reads all others from it.
	Over kv.State
}

// DefaultMaxPastBytes is enough to resume watches and lists for as long as one can
// expect of a store without a disk.
const DefaultMaxPastBytes = 256 << 20

// Store is a kv.Backend.
type Store struct {
	options Options
	kept    kv.Kept

	mu sync.RWMutex
	// keys holds the keys that were written.
	keys btree.Map[string, *written]
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

// A written key has its versions in order of their revisions.
type written struct {
	versions []version
	hides    bool // Options.Over has a value of the key
}

// A version without a value is a deletion.
type version struct {
	revision int64
	value    []byte
}

var (
	_ kv.Backend = (*Store)(nil)
	_ kv.Keeper  = (*Store)(nil)
)

// New returns a store.
func New(options Options) *Store {
	if options.MaxValueBytes == 0 {
		options.MaxValueBytes = kv.DefaultMaxValueBytes
	}
	if options.MaxPastBytes == 0 {
		options.MaxPastBytes = DefaultMaxPastBytes
	}
	s := &Store{options: options, newest: 1, changed: make(chan struct{})}
	if options.Over != nil {
		s.newest = options.Over.Revision()
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
	revision, err := s.resolve(revision)
	var v version
	known := false
	if err == nil {
		v, known = at(s.versions(key), revision)
	}
	s.mu.RUnlock()
	switch {
	case err != nil:
		return kv.Record{}, err
	case !known && s.options.Over != nil:
		return s.options.Over.Get(ctx, key)
	case v.value == nil:
		return kv.Record{}, kv.ErrNotFound
	}
	return kv.Record{Key: key, Value: v.value, Revision: v.revision}, nil
}

// Commit implements kv.Backend.
func (s *Store) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if limit := s.options.MaxValueBytes; w.Size() > limit {
		return 0, &kv.TooLargeError{Size: w.Size(), Limit: limit}
	}
	under, err := s.under(ctx, &w)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, kv.ErrClosed
	}
	if err := s.check(&w, under); err != nil {
		return 0, err
	}
	revision := s.newest + 1
	for c := range w.All() {
		s.change(c, w.Note, under)
	}
	s.shed()
	s.wake()
	return revision, nil
}

// check returns the error that rejects w now, or nil.
func (s *Store) check(w *kv.Write, under records) error {
	if err := s.expect(w.First(), under); err != nil {
		return err
	}
	for _, g := range w.Guards {
		if v := s.current(g.Key, under); v.revision != g.Revision {
			return conflict(g.Key, g.Revision, v)
		}
	}
	for _, c := range w.With {
		if err := s.expect(c, under); err != nil {
			return err
		}
	}
	return nil
}

// expect returns the error that rejects a change now, or nil.
func (s *Store) expect(c kv.Change, under records) error {
	if v := s.current(c.Key, under); v.revision != c.Expect || !c.Possible() {
		return conflict(c.Key, c.Expect, v)
	}
	return nil
}

// current returns the present version of a key. It has no revision if the key does not exist.
func (s *Store) current(key string, under records) version {
	k, ok := s.keys.Get(key)
	if !ok {
		return under.find(key)
	}
	if last := k.versions[len(k.versions)-1]; last.value != nil {
		return last
	}
	return version{}
}

// change makes a change at a revision of its own.
func (s *Store) change(c kv.Change, note []byte, under records) {
	prev := s.current(c.Key, under)
	k, ok := s.keys.Get(c.Key)
	if !ok {
		k = &written{hides: prev.value != nil}
		s.keys.Set(c.Key, k)
	}
	s.newest++
	k.versions = append(k.versions, version{s.newest, c.Value})
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

// versions returns the versions of a key since the oldest kept revision.
func (s *Store) versions(key string) []version {
	if k, ok := s.keys.Get(key); ok {
		return k.versions
	}
	return nil
}

// at returns the version that was current at revision, and whether there was one. A deletion is one, too.
func at(versions []version, revision int64) (version, bool) {
	i := sort.Search(len(versions), func(i int) bool { return versions[i].revision > revision })
	if i == 0 {
		return version{}, false
	}
	return versions[i-1], true
}

// Keep implements kv.Keeper.
func (s *Store) Keep(revision int64) (release func(), err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	return s.kept.Keep(revision, s.oldest, s.newest)
}
