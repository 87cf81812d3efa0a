package kv

import "context"

// A Sizer is a Backend with its data on a disk. Not every Backend is one.
type Sizer interface {
	// Size returns the bytes that the backend uses on disk, including reusable ones.
	Size(ctx context.Context) (int64, error)
}

// A Counter is a Backend that counts keys without reading what they have.
type Counter interface {
	// Count returns the number of keys with a prefix at a revision, or for Latest at some time during the call.
	Count(ctx context.Context, prefix string, revision int64) (int64, error)
}
