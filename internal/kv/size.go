package kv

import "context"

// A Sizer is a Backend that takes up space on a disk. Not every Backend does.
type Sizer interface {
	// Size returns how many bytes the backend takes up there, those that it could use again too.
	Size(ctx context.Context) (int64, error)
}
