package kv

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound means that the key has no value at the requested revision.
	ErrNotFound = errors.New("key not found")
	// ErrClosed means that the backend was closed.
	ErrClosed = errors.New("storage is closed")
	// ErrFull means that there is no space left for the write. Nothing was written; a retry may
	// succeed once there is space.
	ErrFull = errors.New("no space left in storage")
	// ErrUncertain means that the write may or may not have happened.
	ErrUncertain = errors.New("the outcome of the write is unknown")
	// ErrUnavailable means that a remote store is unreachable or does not respond. Nothing was
	// written; a retry may succeed.
	ErrUnavailable = errors.New("storage is not available")
)

// ConflictError names a key whose revision differs from the one that a write expected.
type ConflictError struct {
	Key      string
	Expected int64
	// Actual is the stored record; its Revision is Absent if the key does not exist. Value may be nil
	// if the backend would have to fetch it.
	Actual Record
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("key %q is at revision %d, the write expected %d", e.Key, e.Actual.Revision, e.Expected)
}

// CompactedError means that the requested state is compacted.
type CompactedError struct {
	Asked  int64
	Oldest int64 // the oldest revision that is not compacted
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("revision %d is no longer kept, the oldest is %d", e.Asked, e.Oldest)
}

// FutureError means that the requested revision does not exist yet.
type FutureError struct {
	Asked  int64
	Newest int64
}

func (e *FutureError) Error() string {
	return fmt.Sprintf("revision %d has not happened yet, the newest is %d", e.Asked, e.Newest)
}

// RestoredError means that the store is at an earlier state than one seen before, as after the restore
// of a backup. Earlier reads may be invalid. The error is permanent: the backend must be opened anew.
type RestoredError struct {
	Was, Now int64 // the newest revision, before and then
}

func (e *RestoredError) Error() string {
	return fmt.Sprintf("the store was put back: it is at revision %d and was at %d before", e.Now, e.Was)
}

// Unwrap makes it an ErrUnavailable for callers that only retry.
func (e *RestoredError) Unwrap() error { return ErrUnavailable }

// TooLargeError means that the values of a write exceed the limit of the backend.
type TooLargeError struct {
	Size  int
	Limit int // 0 if a remote store rejects the write without a limit
}

func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("value of %d bytes is larger than the store takes", e.Size)
	}
	return fmt.Sprintf("value of %d bytes is larger than the limit of %d", e.Size, e.Limit)
}

// EncodeError means that a value could not be brought into its stored form, such as encrypted. Nothing
// was written; a retry may succeed.
type EncodeError struct {
	Key string
	Err error
}

func (e *EncodeError) Error() string { return e.Err.Error() }

func (e *EncodeError) Unwrap() error { return e.Err }

// CorruptError gives the place of a damage. A backend that finds damage at open fails to open.
type CorruptError struct {
	Where  string
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("storage is damaged at %s: %s", e.Where, e.Reason)
}
