package kv

import (
	"context"
	"time"
)

// A Leaser is a Backend that forgets a key by itself. Not every Backend can.
type Leaser interface {
	// Lease stores a value under a key, unconditionally. The backend deletes the key unless the call
	// is repeated within life. Its errors are those of Commit.
	Lease(ctx context.Context, key string, value []byte, life time.Duration) error
}
