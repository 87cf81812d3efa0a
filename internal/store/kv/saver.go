package kv

import (
	"context"
	"io"
)

// A Saver is a Backend that copies itself while it is open. Not every Backend is one.
type Saver interface {
	// Copy begins a copy of the content at one revision. The caller closes it before the Backend.
	Copy(ctx context.Context) (Copy, error)
}

// A Copy is a file with the content of a store. Its methods are for one goroutine at a time.
type Copy interface {
	// Size is the number of bytes of the file.
	Size() int64
	// WriteFrom writes the file from an offset on. Parts of several calls make one file: bytes that differ
	// between calls are in unused parts of it.
	WriteFrom(ctx context.Context, to io.Writer, offset int64) error
	// Close frees the memory and the disk that the copy needs.
	Close() error
}
