// Package transform stores values in another form than their readers and writers see: another
// encoding, another version, encrypted.
//
// It decorates any kv.Backend. Callers see the plain values, the backend only the stored ones. Keys
// and revisions are equal for both, so a backend, also a remote one, checks expectations as usual.
//
// The package knows the storage contract. It does not know the meaning of a value; a Transformer does.
package transform

import (
	"context"
	"errors"
	"iter"

	"github.com/anykind/anykind/internal/store/kv"
)

// A Transformer converts plain values to stored ones and back. Its methods may be called concurrently.
// They do not change their argument, and may return it. Decode reverses Encode for the same key; a
// value may have many encodings.
type Transformer interface {
	// Decode returns the plain value. If it cannot decode a value, it returns it unchanged: the reader
	// of that value then fails, and other reads do not.
	Decode(key string, stored []byte) []byte
	// Encode returns the stored value.
	Encode(key string, plain []byte) []byte
}

// Options of a Backend.
type Options struct {
	// MaxValueBytes limits the bytes of the plain values of a write; 0 for kv.DefaultMaxValueBytes.
	// The backend must accept their stored form.
	MaxValueBytes int
}

// Backend is a kv.Backend that decorates another one.
type Backend struct {
	below       kv.Backend
	transformer Transformer
	options     Options
}

var _ kv.Backend = (*Backend)(nil)

// New returns a backend that stores the values as encoded by t in another backend. Close closes both.
func New(below kv.Backend, t Transformer, o Options) *Backend {
	if o.MaxValueBytes == 0 {
		o.MaxValueBytes = kv.DefaultMaxValueBytes
	}
	return &Backend{below: below, transformer: t, options: o}
}

// Unwrap returns the decorated backend, see kv.As.
func (b *Backend) Unwrap() kv.Backend { return b.below }

// decode and encode keep absent values absent, and never return an absent value for a present one.

func (b *Backend) decode(key string, stored []byte) []byte {
	return present(stored, b.transformer.Decode, key)
}

func (b *Backend) encode(key string, plain []byte) []byte {
	return present(plain, b.transformer.Encode, key)
}

func present(value []byte, transform func(string, []byte) []byte, key string) []byte {
	if value == nil {
		return nil
	}
	if made := transform(key, value); made != nil {
		return made
	}
	return []byte{}
}

// Get implements kv.Backend.
func (b *Backend) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	r, err := b.below.Get(ctx, key, revision)
	if err != nil {
		return kv.Record{}, err
	}
	r.Value = b.decode(r.Key, r.Value)
	return r, nil
}

// List implements kv.Backend.
func (b *Backend) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	page, err := b.below.List(ctx, r)
	if err != nil {
		return kv.Page{}, err
	}
	for i := range page.Records {
		r := &page.Records[i]
		r.Value = b.decode(r.Key, r.Value)
	}
	return page, nil
}

// Commit implements kv.Backend.
func (b *Backend) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if limit := b.options.MaxValueBytes; w.Size() > limit {
		return 0, &kv.TooLargeError{Size: w.Size(), Limit: limit}
	}
	revision, err := b.below.Commit(ctx, b.stored(w))
	return revision, b.plainError(err)
}

// stored returns the write with stored values. It has no Was: another encoding of the same value need
// not equal the stored one.
func (b *Backend) stored(w kv.Write) kv.Write {
	w.Value, w.Was = b.encode(w.Key, w.Value), nil
	if len(w.With) > 0 {
		with := make([]kv.Change, len(w.With))
		for i, c := range w.With {
			c.Value = b.encode(c.Key, c.Value)
			with[i] = c
		}
		w.With = with
	}
	return w
}

// plainError has the plain value where an error has a stored one.
func (b *Backend) plainError(err error) error {
	var conflict *kv.ConflictError
	if err == nil || !errors.As(err, &conflict) || conflict.Actual.Value == nil {
		return err
	}
	plain := *conflict
	plain.Actual.Value = b.decode(plain.Key, plain.Actual.Value)
	return &plain
}

// Watch implements kv.Backend.
func (b *Backend) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		for batch, err := range b.below.Watch(ctx, prefix, after) {
			for i := range batch.Events {
				e := &batch.Events[i]
				e.Value, e.Prev = b.decode(e.Key, e.Value), b.decode(e.Key, e.Prev)
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

// Outdated implements kv.Former.
func (b *Backend) Outdated(ctx context.Context, key string) (bool, error) {
	t, ok := b.transformer.(interface {
		Outdated(key string, stored []byte) bool
	})
	if !ok {
		if below, ok := kv.As[kv.Former](b.below); ok {
			return below.Outdated(ctx, key)
		}
		return false, nil
	}
	r, err := b.below.Get(ctx, key, kv.Latest)
	if err != nil {
		return false, err
	}
	return t.Outdated(key, r.Value), nil
}

// Revision implements kv.Backend.
func (b *Backend) Revision(ctx context.Context) (int64, error) { return b.below.Revision(ctx) }

// Compact implements kv.Backend.
func (b *Backend) Compact(ctx context.Context, revision int64) error {
	return b.below.Compact(ctx, revision)
}

// Close implements kv.Backend.
func (b *Backend) Close() error { return b.below.Close() }
