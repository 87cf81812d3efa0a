package kv

import (
	"context"
	"iter"
	"time"
)

// A Historian is a Backend that keeps its states for a long time, and the time of each change. Not every
// Backend is one.
type Historian interface {
	// At returns the revision of the state at a time: that of the newest change until then.
	// Errors: *TooEarlyError, *CompactedError, ErrClosed.
	At(ctx context.Context, t time.Time) (int64, error)

	// Recent returns the oldest revision of the recent states. A Backend without history keeps only these.
	Recent() int64

	// Changes yields the kept changes of keys after a revision, in order. keys is a prefix if it ends in a
	// slash, and otherwise one key. It ends at the newest acknowledged write before the call. after 0
	// is the oldest kept state.
	// Errors: *CompactedError, *CorruptError, ErrClosed, the context's.
	Changes(ctx context.Context, keys string, after int64) iter.Seq2[Past, error]

	// Log yields the kept changes after a revision up to another one, the newest first, by key and revision: it
	// reads no value. after 0 is the oldest kept state, until 0 is the newest acknowledged write before the
	// call. A forgotten change may be among them.
	// Errors: *CompactedError, *CorruptError, ErrClosed, the context's.
	Log(ctx context.Context, after, until int64) iter.Seq2[Logged, error]

	// Change returns a change of a key. Without one at this revision, the error is ErrNotFound.
	// Errors: *CompactedError, *CorruptError, ErrNotFound, ErrClosed.
	Change(ctx context.Context, key string, revision int64) (Past, error)

	// Forget removes a key from all states except those that have its present value. The revisions of its
	// other changes stay, without keys and values.
	// Errors: ErrFull, ErrClosed.
	Forget(ctx context.Context, key string) error
}

// A Past is a change with its time.
type Past struct {
	Event
	Time time.Time
}

// Logged names a change.
type Logged struct {
	Key      string
	Revision int64
}

// TooEarlyError means that no state of a time is kept.
type TooEarlyError struct {
	Asked  time.Time
	Oldest time.Time // of the kept states
}

func (e *TooEarlyError) Error() string {
	return "the oldest kept state is of " + e.Oldest.UTC().Format(time.RFC3339) + ", not of " + e.Asked.UTC().Format(time.RFC3339)
}
