// Package kv is the storage contract: a map from key to bytes that remembers
// its recent past.
//
// Every change to the map happens at a revision. Revisions are store-wide,
// strictly increasing and never used twice, also across restarts and crashes.
// A backend keeps every state of the map from its oldest kept revision on, so a
// reader can ask for the map as it was, and a watcher for what happened since.
//
// The package knows keys, bytes and revisions. It does not know what the bytes
// mean, who may write them, or how they are served. It imports nothing of ours.
package kv

import (
	"context"
	"iter"
)

// Absent, where a revision is expected of a key, says that the key must not
// exist. No write ever happens at revision 0.
const Absent int64 = 0

// Latest, where a revision says which state of the map is meant, is the newest.
const Latest int64 = 0

// DefaultMaxValueBytes is how many bytes the values of one write may have unless a
// backend is told otherwise: the same for all, so that what one has taken the others
// take. etcd takes requests of 1.5 MiB unless it is told otherwise, and counts the
// keys, which are there three times each, and the conditions.
const DefaultMaxValueBytes = 3<<19 - 8<<10

// A Record is one key of the map with its value. A key is any string of bytes
// but the empty one; a value may be empty, which is not the same as absent.
type Record struct {
	Key      string
	Value    []byte
	Revision int64 // of the last write to Key
}

// A Write is a change to one key, and to others with it. It happens if all of
// them are where they are expected and every guard holds, and otherwise changes
// nothing. It names no key twice.
type Write struct {
	Key    string
	Value  []byte   // nil deletes the key; an empty value is not nil
	Expect int64    // the revision Key must be at, or Absent
	Guards []Guard  // other keys that must be where the writer saw them
	With   []Change // of other keys that happen with it: all, or none
	// Was is what Get has of Key at Expect, if the writer has it at hand: a backend
	// need not read it then. Nil says nothing.
	Was []byte
}

// A Change is what a Write does to one of its keys.
type Change struct {
	Key    string
	Value  []byte // nil deletes the key
	Expect int64  // the revision Key must be at, or Absent
}

// First is the change of Key.
func (w *Write) First() Change { return Change{w.Key, w.Value, w.Expect} }

// All yields the first change and then those of With.
func (w *Write) All() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		if !yield(w.First()) {
			return
		}
		for _, c := range w.With {
			if !yield(c) {
				return
			}
		}
	}
}

// Size is how many bytes of values the write has.
func (w *Write) Size() int {
	size := len(w.Value)
	for _, c := range w.With {
		size += len(c.Value)
	}
	return size
}

// Possible reports whether there is anything for the change to do. Deleting needs
// an Expect other than Absent.
func (c Change) Possible() bool { return c.Value != nil || c.Expect != Absent }

// A Guard is a condition on a key that the write does not change. It makes a
// write atomic with something that was read before it: the namespace an object
// is created in, the definition it was checked against.
type Guard struct {
	Key      string
	Revision int64 // the revision Key must be at, or Absent
}

// A Range names consecutive keys of one state of the map, in byte order.
type Range struct {
	Prefix   string // only keys that start with it
	After    string // only keys greater than it; "" from the start of Prefix
	Limit    int    // at most so many records; 0 for all
	Revision int64  // the state to read, or Latest
}

// A Page is what List read of a Range.
type Page struct {
	Records  []Record
	Revision int64 // the state that was read, never Latest
	More     bool  // the range goes on after the last record
}

// An Event is one committed change.
type Event struct {
	Key          string
	Revision     int64
	Value        []byte // nil when the key was deleted
	Prev         []byte // the value before; nil when the key was created
	PrevRevision int64  // of Prev, or Absent when the key was created
}

// A Batch is a run of events in order of their revisions. Every event at or
// below Revision that the watch asked for is in this batch or an earlier one; a
// batch without events only says so. Revision grows from batch to batch.
type Batch struct {
	Events   []Event
	Revision int64
}

// Backend is the store. All methods may be called concurrently, and every error
// is one of this package's, wrapped or not, or the context's. Besides what each
// method names, any of them may give *CorruptError where it meets damage that
// happened while the store was open, and ErrUnavailable and *RestoredError where
// the store is remote.
//
// Order: what was acknowledged is seen by every read that starts after it. A
// Commit has its revisions for itself: one for each of its changes, in the order of
// Write.All and without a gap, or one for all of them. A state between the first and
// the last can be read by its revision, but is never the Latest. Events that share a
// revision, which others who write to the same store by other means may cause too,
// are in one batch.
// The oldest kept revision is 1 until the first compaction; a revision below it,
// also a negative one, is compacted. A backend in memory compacts by itself when
// its past outgrows the space that it has for that.
//
// Bytes: a backend owns a Write's Value and Was from the call of Commit on, and what
// it returns is shared with every other reader. Nobody changes either, ever. The
// slices of the Records of a Page and of the Events of a Batch are the caller's.
//
// Durability: a write is on disk, as far as the operating system lets a program
// know, before it is acknowledged by Commit and before any method lets anyone
// see it. An in-memory backend is durable for as long as it is open. When a
// write to disk failed in a way that leaves its outcome unknown (fsync), the
// backend does not go on: it calls the fatal function it was opened with.
type Backend interface {
	// Get returns the record of key as it was at revision, or Latest.
	// Errors: ErrNotFound, *CompactedError, *FutureError, ErrClosed.
	Get(ctx context.Context, key string, revision int64) (Record, error)

	// List returns the records of a range. All of them are of one state of the
	// map, and two calls at one revision see the same state.
	// Errors: *CompactedError, *FutureError, ErrClosed.
	List(ctx context.Context, r Range) (Page, error)

	// Commit makes one write and returns the revision of the change of its Key,
	// which is greater than that of every write acknowledged before Commit was
	// called. Expect is looked at before the guards, those before With, and the
	// first that does not hold is reported. Deleting needs an Expect other than
	// Absent: there is nothing to delete otherwise, and it is a conflict whatever
	// the key holds. A context that ends while the outcome is open gives
	// ErrUncertain, or the backend waits the moment it takes to know; one that had
	// ended before gives its own error.
	// Errors: *ConflictError, *TooLargeError, ErrFull, ErrUncertain, ErrClosed,
	// the context's; all but ErrUncertain promise that nothing was written, and an
	// error that is ErrUncertain is never the context's as well. A full store goes
	// on reading, and on deleting: what a write that deletes its Key puts with that
	// is small.
	Commit(ctx context.Context, w Write) (int64, error)

	// Watch yields what was committed to keys with the prefix at revisions
	// greater than after: first what the backend still remembers, then on and
	// on as it happens, each event once, in order, without gaps, until the
	// context ends or the consumer stops. The error, if any, is yielded last and
	// with an empty batch. A consumer that is slow delays nobody; one that is so
	// slow that it asks for what is no longer kept gets *CompactedError.
	//
	// After may be any revision from the oldest kept one on; Latest means the
	// current one when the range over the sequence starts. Even when nothing
	// happens to the prefix, a batch without events tells the consumer in time how
	// far it has seen: at once for a local backend, within the progress interval
	// for a remote one. That goes for the first batch too, so a consumer that has
	// received it knows where it stands. Ranging over the sequence again is
	// another watch.
	// Errors: *CompactedError, *FutureError, ErrClosed, the context's.
	Watch(ctx context.Context, prefix string, after int64) iter.Seq2[Batch, error]

	// Revision returns the revision of the newest acknowledged write anywhere in
	// the store: a reader that has seen it has seen everything acknowledged
	// before the call. A store that was never written to is at revision 1.
	// Errors: ErrClosed.
	Revision(ctx context.Context) (int64, error)

	// Compact forgets every state older than revision: it becomes the oldest
	// kept one. What is current is never forgotten. Space comes back in the
	// background; writers are not held up. Compacting to what is already
	// compacted, or to Latest, changes nothing and is no error.
	// Errors: *FutureError, ErrFull, ErrClosed.
	Compact(ctx context.Context, revision int64) error

	// Close ends all watches with ErrClosed, finishes commits under way, and
	// releases files and locks. Afterwards every method gives ErrClosed. Close
	// does not wait for the consumers of watches. Calling it again does nothing.
	Close() error
}
