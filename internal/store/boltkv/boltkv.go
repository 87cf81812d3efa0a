// Package boltkv implements the storage contract with one bbolt file in a directory.
//
// Every write is a record stored under its revision; deletions are records too. The file has no other
// index. The index from keys to revisions is in memory. Open rebuilds it by a scan that also verifies
// that every record is present and complete. Values stay in the file.
//
// One goroutine, the committer, does all writes. It takes the waiting writes, checks them, commits
// them in one transaction with an fsync, and only then updates the index, wakes the watches and
// acknowledges, in that order. So no write is visible before it is durable.
//
// Each reads the file of a store that is not open, without the index.
//
// The package knows bbolt and the file system. It does not know the meaning of values. Its user
// decides when to compact.
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
	// ErrInUse means that another process has the data directory open.
	ErrInUse = errors.New("data directory is in use by another process")
	// ErrNotWritable means that the data directory is not writable.
	ErrNotWritable = errors.New("data directory is not writable")
)

// FormatError means that a newer version wrote the file.
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
	// Fatal is called, once, when the outcome of a disk write is unknown and the store is no longer
	// trustworthy. It should end the process. If it returns, the store behaves as closed. Nil panics.
	Fatal func(error)
	// Logger logs rare events. Nil discards them.
	Logger *slog.Logger
	// MaxValueBytes limits the bytes of the values of a write; 0 for kv.DefaultMaxValueBytes.
	MaxValueBytes int

	// prepare lets a test make disk operations fail: it is called before the store does anything, and
	// may replace commit and allocate.
	prepare func(*Store)
}

// Store is a kv.Backend.
type Store struct {
	options Options
	log     *slog.Logger
	db      *bolt.DB
	queue   queue
	mapping mapping
	kept    kv.Kept

	// Only the committer changes the following fields, under mu, so it may read them without mu. All
	// others read them under mu.
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
	noted  bool // the file has the format of records with notes

	done chan struct{} // closed when the committer has ended

	// Disk operations of the store, besides those of bbolt.
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
	// bbolt waits for its read transactions, which never wait for a consumer. Closing twice does
	// nothing.
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
	return kv.Resolve(revision, s.state.oldest, s.state.newest)
}
