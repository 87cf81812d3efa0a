package kv

import (
	"context"
	"io"
)

// A Saver is a Backend that copies itself while it is open. Not every Backend is one.
type Saver interface {
	// Save writes a copy of the file with the content at one revision. It calls begin once, with the
	// number of bytes, before the first byte.
	Save(ctx context.Context, begin func(size int64) io.Writer) error
}
