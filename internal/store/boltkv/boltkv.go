// Package boltkv implements the storage contract with one bbolt file in a directory.
//
// Every write is a record stored under its revision; deletions are records too. The file has no other
// index. The index from keys to revisions is in memory. Open rebuilds it by a scan that also verifies
// that every record is present and complete. Values stay in the file.
//
// One goroutine, the committer, takes the waiting writes and checks them. It makes them durable as a frame of a
// journal, with one sync, and only then updates the index, wakes the watches and acknowledges, in that order. So no
// write is visible before it is durable. Another goroutine, the settler, files the writes of the journal: it moves them
// to the bbolt file, many in one transaction, and compacts. Until then, their values are in memory.
//
// The journal is for busy times. Without it, and when the disk is full, the committer files a group of writes
// itself. A file that a journal continues has a mark, so that Open finds the journal, and so that an earlier version
// of the program refuses the file. A store at rest has no mark: the file has everything.
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
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/journal"
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
	settler settler
	mapping mapping
	kept    kv.Kept
	space   space

	mu     sync.RWMutex // of the following fields
	newest int64        // the newest write that readers see
	// state is that of the file. Later writes are in the journal and in tail.
	state   state
	pending int64 // size of their records
	index   index // only the committer adds, only a filing forgets
	tail    tail
	closed  bool // set by Close too
	// changed is closed when newest or closed changes, and then replaced.
	changed chan struct{}

	// appending is held while a group is committed, and while the use of the journal ends.
	appending sync.Mutex
	journal   *journal.Journal // nil while it is not in use
	files     []journalFile    // none before the first use
	last      time.Time        // of the last group
	buffer    []byte           // of a frame
	unable    bool             // there cannot be a journal
	// mark is the nonce of the journal that continues the file; 0 for none. It is changed by a filing with appending held.
	mark atomic.Uint64

	// filing is held during a transaction of bbolt.
	filing sync.Mutex
	stored []byte // a buffer of records
	noted  bool   // the file has records with notes
	format uint32 // of the file

	ended  sync.Once
	broken atomic.Pointer[error] // the store is not trustworthy
	done   chan struct{}         // closed when the committer has ended

	// Disk operations of the store, besides those of bbolt.
	commit   func(*bolt.Tx) error
	allocate func(from, to int64) error
	open     func(path string) (journalFile, error)

	journalBytes int64
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
func (s *Store) Close() (err error) {
	s.shut()
	s.queue.close()
	<-s.done
	s.settler.stop()
	s.ended.Do(func() {
		if s.broken.Load() == nil {
			err = s.leaveOneFile()
		}
		for _, f := range s.files {
			err = errors.Join(err, f.Close())
		}
	})
	// bbolt waits for its read transactions, which never wait for a consumer. Closing twice does
	// nothing.
	return errors.Join(err, s.db.Close())
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
	return kv.Resolve(revision, s.state.oldest, s.newest)
}
