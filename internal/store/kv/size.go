package kv

import "context"

// A Sizer is a Backend that takes up space on a disk. Not every Backend does.
type Sizer interface {
	// Size returns how many bytes the backend takes up there, those that it could use again too.
	Size(ctx context.Context) (int64, error)
}

// A Counter is a Backend that counts keys without reading what they have.
type Counter interface {
	// Count returns how many keys with a prefix there are now, or were at some time during the call.
	Count(ctx context.Context, prefix string) (int64, error)
}
