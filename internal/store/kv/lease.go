package kv

import (
	"context"
	"time"
)

// A Leaser is a Backend that forgets a key by itself. Not every Backend can.
type Leaser interface {
	// Lease puts a value under a key, whatever is there, which the backend deletes when
	// it is not put again within a time. Its errors are those of Commit.
	Lease(ctx context.Context, key string, value []byte, life time.Duration) error
}
