// Package history keeps the states of a store for a long time: every state of every key, with the time
// and the note of each change. The states of chosen keys become coarser with time.
//
// A Store decorates a kv.Backend. That backend keeps recent states, and the Store keeps all of them in a file of
// its own, so old states answer in the same way: by Get and List of a revision, and by watches that begin there.
// One goroutine, the archivist, follows the backend with a watch and writes its events to the file. The backend
// is compacted only as far as the file reaches, so neither a crash nor a slow disk makes a gap. Writers and
// readers of the present never wait for the file.
//
// The file has versions of a key in runs: the newest one whole, and each older one as a difference from the next.
// A run is compressed, and encrypted like the values of its key in the backend.
//
// The package knows keys, values and their differences. It does not know the meaning of a value or of a note.
package history

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/transform"
)

// Options of a Store. The zero value keeps everything.
type Options struct {
	// Keep is the time after which states may be dropped; 0 keeps them for ever.
	Keep time.Duration
	// MaxBytes limits the file: beyond it, the oldest states are dropped. 0 is no limit.
	MaxBytes int64
	// Recent is the time for which the backend below keeps states; 0 is five minutes.
	Recent time.Duration
	// Every returns the interval of a key; 0, or no function, keeps all of its states. Of the updates of a key in one interval, the last one is
	// kept when they are no longer recent. Creations, deletions and the states that Keep has are kept, too.
	Every func(key string) time.Duration
	// Seal encrypts runs; nil stores them as they are.
	Seal transform.Transformer
	// Logger logs rare events. Nil discards them.
	Logger *slog.Logger
	// Now is the clock of the changes; nil is that of the system.
	Now func() time.Time

	// batch is the number of events that a transaction waits for; 0 is the usual one.
	batch int
	// retry is the time after a failure until the next attempt; 0 is the usual one.
	retry time.Duration
	// fast leaves out the sync to the disk: tests do not crash the system.
	fast bool
}

// Store is a kv.Backend that is a kv.Historian.
type Store struct {
	below   kv.Backend
	options Options
	log     *slog.Logger
	file    *file
	cancel  context.CancelFunc
	working sync.WaitGroup

	kept kv.Kept

	// turn is held by a change of the file.
	turn sync.Mutex

	mu sync.RWMutex
	position
	closed  bool
	size    int           // of pending
	failed  error         // the reason for which the archivist does not go on
	changed chan struct{} // closed when seen or failed changes, and then replaced
	recent  int64         // the oldest revision below
	last    int64         // the time of the last event
}

// A position is the progress of a Store.
type position struct {
	oldest int64 // the oldest kept revision
	// The archivist has seen all events up to seen. Those after archived are in pending, with the time of each.
	seen, archived int64
	pending        []event
}

// An event is an event of the backend with the time of its write, in milliseconds.
type event struct {
	kv.Event
	time int64
}

var (
	_ kv.Backend   = (*Store)(nil)
	_ kv.Historian = (*Store)(nil)
)

// Open opens the history of a backend in a data directory, and creates its file if it is missing. Close
// closes the backend, too.
//
// A file that does not fit to the backend, because states between the two are lost, is renamed, and a new
// history begins.
func Open(below kv.Backend, dir string, o Options) (*Store, error) {
	o.Recent = cmp.Or(o.Recent, 5*time.Minute)
	o.batch, o.retry = cmp.Or(o.batch, batchEvents), cmp.Or(o.retry, retryAfter)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	f, now, err := open(ctx, below, dir, o)
	var recent int64
	if err == nil {
		recent, err = oldestOf(ctx, below)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	s := &Store{
		below: below, options: o, log: o.Logger, file: f, cancel: cancel, changed: make(chan struct{}),
		position: position{oldest: now.oldest, seen: now.archived, archived: now.archived}, recent: recent, last: now.time,
	}
	s.working.Go(func() { s.archive(ctx) })
	s.working.Go(func() { s.retain(ctx) })
	s.working.Go(func() { _ = kv.Retain(ctx, settled{s}, o.Recent, s.unsettled) })
	return s, nil
}

// Unwrap returns the decorated backend, see kv.As.
func (s *Store) Unwrap() kv.Backend { return s.below }

// Commit implements kv.Backend. The note of a write begins with its time.
func (s *Store) Commit(ctx context.Context, w kv.Write) (int64, error) {
	w.Note = append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(w.Note)), uint64(s.options.Now().UnixMilli())), w.Note...)
	return s.below.Commit(ctx, w)
}

// noted returns the time and the note of a write. The time is 0 for a write that came by no Store.
func noted(note []byte) (at int64, rest []byte) {
	if len(note) < 8 {
		return 0, nil
	}
	return int64(binary.BigEndian.Uint64(note)), note[8:]
}

// Revision implements kv.Backend.
func (s *Store) Revision(ctx context.Context) (int64, error) { return s.below.Revision(ctx) }

// now returns the position at this moment.
func (s *Store) now() position {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.position
}

// Recent implements kv.Historian.
func (s *Store) Recent() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.recent
}

// Close implements kv.Backend. Events that are not in the file yet stay in the backend.
func (s *Store) Close() error {
	s.cancel()
	err := s.below.Close() // ends the watch of the archivist
	s.working.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return err
	}
	s.closed = true
	return errors.Join(err, s.file.close())
}

// Keep implements kv.Keeper.
func (s *Store) Keep(revision int64) (release func(), err error) {
	newest, err := s.below.Revision(context.Background())
	if err != nil {
		return nil, err
	}
	return s.kept.Keep(revision, s.now().oldest, newest)
}

// check returns an error for a state that is not kept. It is a revision or kv.Latest.
func (s *Store) check(revision int64) error {
	if oldest := s.now().oldest; revision != kv.Latest && revision < oldest {
		return &kv.CompactedError{Asked: revision, Oldest: oldest}
	}
	return nil
}

// settled is the backend below. A compaction ends where the file ends.
type settled struct{ *Store }

// Compact implements kv.Backend.
func (s settled) Compact(ctx context.Context, revision int64) error {
	if revision > s.now().archived {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	revision = min(revision, s.now().archived)
	err := s.below.Compact(ctx, revision)
	if err == nil {
		s.mu.Lock()
		s.recent = max(s.recent, revision)
		s.mu.Unlock()
	}
	return err
}

func (s *Store) unsettled(err error) {
	s.log.Warn("recent states could not be compacted", "error", err)
}
