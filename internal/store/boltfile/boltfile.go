// Package boltfile reads bbolt files without bbolt, and never writes them.
//
// bbolt trusts its pages: on a damaged file it panics, in goroutines of its own too, or loops forever.
// boltfile checks every offset, and visits every page at most once. It reads pages one after the
// other, so a large file needs no more memory than a small one.
//
// The format: the first two pages are metas, used in turn. All others are nodes of trees, or free. A
// page may continue on the following pages. Numbers are in the byte order of the machine. The package
// does not know the meaning of keys and values.
package boltfile

import (
	"bytes"
	"fmt"
	"io"

	"github.com/anykind/anykind/internal/store/kv"
)

// A File is the newest state of a file. Each of its pages can be visited once. A second pass needs
// another File.
type File struct {
	name     string
	size     uint64
	read     func(offset, length uint64) ([]byte, error) // of the file
	pageSize uint64
	pages    uint64 // in use or free; the rest of the file was never used
	root     uint64
	visited  []uint64 // one bit for each page
}

// Mapped returns the File of data in memory.
func Mapped(name string, data []byte) (*File, error) {
	f := &File{name: name, size: uint64(len(data)), read: func(offset, length uint64) ([]byte, error) {
		return data[offset : offset+length : offset+length], nil
	}}
	return f, f.find()
}

// Read returns the File of size bytes of a reader.
func Read(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{name: name, size: uint64(size), read: func(offset, length uint64) ([]byte, error) {
		b := make([]byte, length)
		_, err := r.ReadAt(b, int64(offset))
		return b, err
	}}
	return f, f.find()
}

// Name is that of the file.
func (f *File) Name() string { return f.name }

// Damage returns the error for a damaged part of the file.
func (f *File) Damage(where any, reason string) error {
	return &kv.CorruptError{Where: fmt.Sprint(f.name, ", ", where), Reason: reason}
}

// Buckets visits the top level of the file, outside of buckets.
func (f *File) Buckets(visit func(where PageID, e Element) error) error {
	return f.walk(f.root, nil, nil, visit)
}

// Walk visits all keys of a bucket in order. The bucket is given by its stored value.
func (f *File) Walk(stored []byte, visit func(where PageID, e Element) error) error {
	if len(stored) < 16 {
		return f.Damage("its root", "a bucket is too short")
	}
	if root := native.Uint64(stored); root != 0 {
		return f.walk(root, nil, nil, visit)
	}
	p, err := f.node(0, stored[16:])
	if err != nil {
		return err
	}
	if !p.leaf {
		return f.Damage(p.id, "a bucket inside a page is not a leaf")
	}
	return f.walkNode(p, nil, nil, visit)
}

// walk visits all keys of a tree in order. All keys must be at least low, and below high if high is
// not nil.
func (f *File) walk(id uint64, low, high []byte, visit func(where PageID, e Element) error) error {
	p, err := f.page(id)
	if err != nil {
		return err
	}
	return f.walkNode(p, low, high, visit)
}

func (f *File) walkNode(p page, low, high []byte, visit func(where PageID, e Element) error) error {
	for i := range p.count {
		e, err := f.element(p, i)
		if err != nil {
			return err
		}
		if order := bytes.Compare(e.Key, low); order < 0 || (order == 0 && i > 0) || (high != nil && bytes.Compare(e.Key, high) >= 0) {
			return f.Damage(p.id, fmt.Sprintf("the key of element %d is not in order", i))
		}
		if low = e.Key; p.leaf {
			err = visit(p.id, e)
		} else {
			var next Element
			if i+1 < p.count {
				if next, err = f.element(p, i+1); err != nil {
					return err
				}
			} else {
				next.Key = high
			}
			err = f.walk(e.child, e.Key, next.Key, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
