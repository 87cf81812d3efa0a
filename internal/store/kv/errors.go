package kv

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound says that the key has no value at the asked revision.
	ErrNotFound = errors.New("key not found")
	// ErrClosed says that the backend was closed.
	ErrClosed = errors.New("storage is closed")
	// ErrFull says that there is no space left for the write. Nothing was
	// written; the same write may succeed once there is space.
	ErrFull = errors.New("no space left in storage")
	// ErrUncertain says that the write may or may not have happened.
	ErrUncertain = errors.New("the outcome of the write is unknown")
	// ErrUnavailable says that a remote store cannot be reached, or cannot answer
	// now. Nothing was written; the same call may succeed later.
	ErrUnavailable = errors.New("storage is not available")
)

// ConflictError says which key was not at the revision that a write expected.
type ConflictError struct {
	Key      string
	Expected int64
	// Actual is what the key holds: its Revision is Absent where it does not
	// exist. Value may be nil where the backend would have had to fetch it.
	Actual Record
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("key %q is at revision %d, the write expected %d", e.Key, e.Actual.Revision, e.Expected)
}

// CompactedError says that the asked state of the map is no longer kept.
type CompactedError struct {
	Asked  int64
	Oldest int64 // the oldest revision that is kept
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("revision %d is no longer kept, the oldest is %d", e.Asked, e.Oldest)
}

// FutureError says that the asked revision has not happened yet.
type FutureError struct {
	Asked  int64
	Newest int64
}

func (e *FutureError) Error() string {
	return fmt.Sprintf("revision %d has not happened yet, the newest is %d", e.Asked, e.Newest)
}

// RestoredError says that the store was put back to an earlier state than one that
// it was seen in, as a backup is. What was read before need not have happened. A
// backend that says so once says so always, and must be opened anew.
type RestoredError struct {
	Was, Now int64 // the newest revision, before and then
}

func (e *RestoredError) Error() string {
	return fmt.Sprintf("the store was put back: it is at revision %d and was at %d before", e.Now, e.Was)
}

// Unwrap makes it an ErrUnavailable to whoever only wants to try again.
func (e *RestoredError) Unwrap() error { return ErrUnavailable }

// TooLargeError says that the values of a write are larger than the backend takes.
type TooLargeError struct {
	Size  int
	Limit int // 0 where a remote store has refused the write, and not said why
}

func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("value of %d bytes is larger than the store takes", e.Size)
	}
	return fmt.Sprintf("value of %d bytes is larger than the limit of %d", e.Size, e.Limit)
}

// CorruptError says where the store is damaged. A backend that finds damage
// when it is opened is not opened.
type CorruptError struct {
	Where  string
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("storage is damaged at %s: %s", e.Where, e.Reason)
}
