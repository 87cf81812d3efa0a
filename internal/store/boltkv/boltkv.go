// Package boltkv is the storage contract on one file of one directory, with
// bbolt as the file's structure.
//
// Every write is a record stored under its revision; deletions are records too.
// The file has no other index: the one from keys to revisions is in memory and
// is rebuilt when the store is opened, by a scan that also proves that every
// record is there and whole. Values stay in the file.
//
// One goroutine, the committer, does all writing. It takes the writes that wait,
// checks them, puts them into one transaction, waits until that is on disk, and
// only then changes the index, wakes the watches and acknowledges, in that order.
// So nothing can be seen before it is durable.
//
// Each reads the file of a store that is not open, without the index.
//
// The package knows bbolt and the file system. It does not know what values
// mean, and when to compact is for its user to say.
package boltkv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/kv"
)

var (
	// ErrInUse says that another process has the data directory open.
	ErrInUse = errors.New("data directory is in use by another process")
	// ErrNotWritable says that the data directory cannot be written to.
	ErrNotWritable = errors.New("data directory is not writable")
)

// FormatError says that the file was written by a newer version.
type FormatError struct {
	Path      string
	Format    uint32
	Supported uint32
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this version reads formats up to %d: use a newer version", e.Path, e.Format, e.Supported)
}

// Options of a Store. The zero value works.
type Options struct {
	// Fatal is called, once, when the outcome of a write to disk is unknown and
	// the store can no longer be trusted. It should end the process. If it
	// returns, the store is as good as closed. Nil panics.
	Fatal func(error)
	// Logger gets the rare things worth telling. Nil discards them.
	Logger *slog.Logger
	// MaxValueBytes is how many bytes the values of a write may have; 0 for
	// kv.DefaultMaxValueBytes.
	MaxValueBytes int

	// prepare is how a test makes a disk fail: it is called before the store
	// does anything, and may replace commit and allocate.
	prepare func(*Store)
}

// Store is a kv.Backend.
type Store struct {
	options Options
	log     *slog.Logger
	db      *bolt.DB
	queue   queue
	mapping mapping

	// The committer is the only one to change what follows, under mu, so it may
	// read it without. All others read it under mu.
	mu     sync.RWMutex
	state  state
	index  index
	tail   tail
	closed bool // set by Close too
	// changed is closed when newest or closed changes, and then replaced.
	changed chan struct{}

	// Only the committer uses these.
	space  space
	buffer []byte
	paused bool // sweeping waits for space

	done chan struct{} // closed when the committer has ended

	// What the store asks of its disk, apart from what bbolt does.
	commit   func(*bolt.Tx) error
	allocate func(from, to int64) error
}

var _ kv.Backend = (*Store)(nil)

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
	s.shut()
	s.queue.close()
	<-s.done
	// bbolt waits for its read transactions, which never wait for a consumer,
	// and does nothing when it is closed already.
	return s.db.Close()
}

// shut ends reads and watches.
func (s *Store) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.wake()
	}
}

// wake tells all watches to look again. It needs mu.
func (s *Store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// resolve returns which state is meant, if it is kept. It needs mu.
func (s *Store) resolve(revision int64) (int64, error) {
	switch {
	case s.closed:
		return 0, kv.ErrClosed
	case revision == kv.Latest:
		return s.state.newest, nil
	case revision < s.state.oldest:
		return 0, &kv.CompactedError{Asked: revision, Oldest: s.state.oldest}
	case revision > s.state.newest:
		return 0, &kv.FutureError{Asked: revision, Newest: s.state.newest}
	}
	return revision, nil
}
