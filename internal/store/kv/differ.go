package kv

import (
	"context"
	"iter"
)

// A Differ is a Backend over a State of another one. Not every Backend is one.
type Differ interface {
	// Differences yields one event for each key with another value than in that State: its value then as the
	// previous one, and its present value with the revision and the note of its last change. The order is that
	// of the keys, and all are of one state of the backend.
	// Errors: ErrClosed, those of the State, the context's.
	Differences(ctx context.Context) iter.Seq2[Event, error]
}
