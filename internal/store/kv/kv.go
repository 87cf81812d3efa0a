// Package kv is the storage contract: a map from keys to bytes with a recent history.
//
// Every change to the map happens at a revision. Revisions are store-wide, strictly increasing and
// never used twice, also across restarts and crashes. A backend keeps every state of the map from its
// oldest kept revision on. So readers can read earlier states, and watches can start in the past.
//
// The package knows keys, bytes and revisions. It does not know the meaning of the bytes, their
// writers, or how they are served. It imports no other package of this module.
package kv

import (
	"context"
	"iter"
)

// Absent, as an expected revision, means that the key must not exist. No write ever happens at
// revision 0.
const Absent int64 = 0

// Latest, as the revision of a state, means the newest one.
const Latest int64 = 0

// DefaultMaxValueBytes is the default limit of the bytes of the values of one write. It is the same
// for all backends, so that values can move between them. etcd's own default limit is 1.5 MiB for a
// request, which includes each key three times and the conditions.
const DefaultMaxValueBytes = 3<<19 - 8<<10

// A Record is one key of the map with its value. A key is any nonempty string of bytes. An empty value
// is not the same as an absent one.
type Record struct {
	Key      string
	Value    []byte
	Revision int64 // of the last write to Key
}

// A Write is a change of one key, and possibly of others. It happens if all of them have their
// expected revisions and every guard holds, and otherwise changes nothing. It names no key twice.
type Write struct {
	Key    string
	Value  []byte   // nil deletes the key; an empty value is not nil
	Expect int64    // the revision Key must be at, or Absent
	Guards []Guard  // other keys that must be where the writer saw them
	With   []Change // of other keys that happen with it: all, or none
	// Was is the value of Key at Expect, if the writer has it, so that the backend need not read it.
	// It may be nil.
	Was []byte
	// Note describes the write, in bytes of the writer. Its events have it, for as long as the backend keeps
	// them. A remote backend drops it.
	Note []byte
}

// A Change is the change of one key by a Write.
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

// Size returns the size of all values of the write.
func (w *Write) Size() int {
	size := len(w.Value)
	for _, c := range w.With {
		size += len(c.Value)
	}
	return size
}

// Possible reports whether the change can ever succeed. Deleting needs an Expect other than Absent.
func (c Change) Possible() bool { return c.Value != nil || c.Expect != Absent }

// A Guard is a condition on a key that the write does not change. It makes a write atomic with an
// earlier read: of the namespace of an object, or of the definition that validated it.
type Guard struct {
	Key      string
	Revision int64 // the revision Key must be at, or Absent
}

// A Range names consecutive keys of one state of the map, in byte order.
type Range struct {
	Prefix   string // only keys that start with it
	After    string // only keys greater than it; "" from the start of Prefix
	Limit    int    // maximum number of records; 0 for all
	Revision int64  // the state to read, or Latest
}

// A Page is a part of a Range, as returned by List.
type Page struct {
	Records  []Record
	Revision int64 // the state that was read, never Latest
	More     bool  // the range continues after the last record
}

// An Event is one committed change.
type Event struct {
	Key          string
	Revision     int64
	Value        []byte // nil when the key was deleted
	Prev         []byte // the value before; nil when the key was created
	PrevRevision int64  // of Prev, or Absent when the key was created
	Note         []byte // of the Write
}

// Size returns about the bytes that the event takes in memory.
func (e *Event) Size() int {
	const fixed = 100
	return fixed + len(e.Key) + len(e.Value) + len(e.Prev) + len(e.Note)
}

// A Batch is a sequence of events in order of their revisions. Every event of the watch up to Revision
// is in this batch or an earlier one. A batch without events only reports progress. Revision grows
// from batch to batch.
type Batch struct {
	Events   []Event
	Revision int64
}

// Backend is the store. All methods may be called concurrently. Every error is one of this package's,
// wrapped or not, or the context's. Besides the errors named by a method, each method may return
// *CorruptError for damage that happened while the store was open, and a remote store also
// ErrUnavailable and *RestoredError.
//
// Order: every read that starts after an acknowledged write sees it. A Commit has its revisions for
// itself: one for each of its changes, in the order of Write.All and without a gap, or one for all of
// them. A state between the first and the last can be read by its revision, but is never the Latest.
// Events with the same revision, which other programs with access to the same store may also cause,
// are in one batch. The oldest kept revision is 1 until the first compaction. A revision below it,
// also a negative one, is compacted. A backend in memory compacts by itself when its history exceeds
// its limit.
//
// Bytes: from the call of Commit on, a backend owns Value and Was of a Write. Returned bytes are
// shared with all readers. Both are immutable. The slices of the Records of a Page and of the Events
// of a Batch belong to the caller.
//
// Durability: a write is on disk, as far as the operating system reports it, before Commit
// acknowledges it and before any method shows it. An in-memory backend is durable for as long as it is
// open. If a disk write fails with an unknown outcome (fsync), the backend stops: it calls the fatal
// function that it was opened with.
type Backend interface {
	// Get returns the record of key as it was at revision, or Latest.
	// Errors: ErrNotFound, *CompactedError, *FutureError, ErrClosed.
	Get(ctx context.Context, key string, revision int64) (Record, error)

	// List returns the records of a range, all of one state of the map. Two calls at one revision see
	// the same state.
	// Errors: *CompactedError, *FutureError, ErrClosed.
	List(ctx context.Context, r Range) (Page, error)

	// Commit makes one write and returns the revision of the change of its Key, which is greater than
	// that of every write acknowledged before the call. Expect is checked first, then the guards, then
	// With; the first mismatch is the error. Deleting needs an Expect other than Absent; a delete that
	// expects Absent is always a conflict. If the context ends while the outcome is open, Commit
	// returns ErrUncertain or waits briefly for the outcome. If the context has ended before the call,
	// its error is returned.
	// Errors: *ConflictError, *TooLargeError, *EncodeError, ErrFull, ErrUncertain, ErrClosed, the context's. All but
	// ErrUncertain promise that nothing was written, and an error that is ErrUncertain is never the
	// context's as well. A full store still reads, and still deletes: the other changes of a write
	// that deletes its Key are small.
	Commit(ctx context.Context, w Write) (int64, error)

	// Watch yields the commits to keys with the prefix at revisions greater than after: first those of
	// the kept history, then new ones as they happen, each event once, in order, without gaps, until
	// the context ends or the consumer stops. The error, if any, is yielded last, with an empty batch.
	// A slow consumer delays no other caller; if its next events are compacted, it gets
	// *CompactedError.
	//
	// After may be any revision from the oldest kept one on; Latest means the current one at the start
	// of the range over the sequence. Even without events, a batch without events reports the progress
	// of the consumer: immediately for a local backend, within the progress interval for a remote one.
	// That includes the first batch, so a consumer with a first batch knows its position. Ranging over
	// the sequence again starts another watch.
	// Errors: *CompactedError, *FutureError, ErrClosed, the context's.
	Watch(ctx context.Context, prefix string, after int64) iter.Seq2[Batch, error]

	// Revision returns the revision of the newest acknowledged write anywhere in
	// the store: a reader that has seen it has seen everything acknowledged
	// before the call. A store that was never written to is at revision 1.
	// Errors: ErrClosed.
	Revision(ctx context.Context) (int64, error)

	// Compact drops every state older than revision, which becomes the oldest kept one. Current values
	// always stay. Space is freed in the background, and writers are not blocked. Compacting to a
	// compacted revision, or to Latest, changes nothing and is no error. A state that a Keeper keeps ends the
	// compaction: it goes as far as that state.
	// Errors: *FutureError, ErrFull, ErrClosed.
	Compact(ctx context.Context, revision int64) error

	// Close ends all watches with ErrClosed, finishes commits under way, and releases files and locks.
	// After that every method returns ErrClosed. Close does not wait for the consumers of watches. A
	// second call does nothing.
	Close() error
}
