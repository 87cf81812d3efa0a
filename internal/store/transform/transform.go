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
	"slices"

	"github.com/anykind/anykind/internal/store/kv"
)

// A Transformer converts plain values to stored ones and back. Its methods may be called concurrently.
// They do not change their argument, and may return it. Decode reverses Encode for the same key; a
// value may have many encodings.
type Transformer interface {
	// Decode returns the plain value. If it cannot decode a value, it returns one that is no object: the
	// reader of that value then fails, and other reads do not.
	Decode(ctx context.Context, key string, stored []byte) []byte
	// Encode returns the stored value. With an error, nothing is written.
	Encode(ctx context.Context, key string, plain []byte) ([]byte, error)
}

// A Former is a Transformer with several stored forms of a value, see kv.Former.
type Former interface {
	// Outdated reports whether Encode would return another form. Its error is the reason for which Decode
	// cannot decode the value.
	Outdated(ctx context.Context, key string, stored []byte) (bool, error)
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
	recent      recent
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

func (b *Backend) decode(ctx context.Context, key string, stored []byte) []byte {
	if stored == nil {
		return nil
	}
	return present(b.transformer.Decode(ctx, key, stored))
}

func (b *Backend) encode(ctx context.Context, key string, plain []byte) ([]byte, error) {
	if plain == nil {
		return nil, nil
	}
	stored, err := b.transformer.Encode(ctx, key, plain)
	if err != nil {
		return nil, &kv.EncodeError{Key: key, Err: err}
	}
	return present(stored), nil
}

func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// Get implements kv.Backend.
func (b *Backend) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	r, err := b.below.Get(ctx, key, revision)
	if err != nil {
		return kv.Record{}, err
	}
	r.Value = b.decode(ctx, r.Key, r.Value)
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
		r.Value = b.decode(ctx, r.Key, r.Value)
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
	stored, err := b.stored(ctx, w)
	if err != nil {
		return 0, err
	}
	revision, err := b.below.Commit(ctx, stored)
	return revision, b.plainError(ctx, err)
}

// stored returns the write with stored values. It has no Was: another encoding of the same value need
// not equal the stored one.
func (b *Backend) stored(ctx context.Context, w kv.Write) (_ kv.Write, err error) {
	first := &written{key: w.Key, plain: w.Value, expect: w.Expect, was: w.Was}
	w.Was = nil
	if w.Value, err = b.encode(ctx, w.Key, w.Value); err != nil {
		return w, err
	}
	first.stored = w.Value
	b.recent.add(first)
	w.With = slices.Clone(w.With)
	for i := range w.With {
		c := &w.With[i]
		plain := c.Value
		if c.Value, err = b.encode(ctx, c.Key, plain); err != nil {
			return w, err
		}
		b.recent.add(&written{key: c.Key, plain: plain, stored: c.Value})
	}
	return w, nil
}

// plainError has the plain value where an error has a stored one.
func (b *Backend) plainError(ctx context.Context, err error) error {
	var conflict *kv.ConflictError
	if err == nil || !errors.As(err, &conflict) || conflict.Actual.Value == nil {
		return err
	}
	plain := *conflict
	plain.Actual.Value = b.decode(ctx, plain.Key, plain.Actual.Value)
	return &plain
}

// Watch implements kv.Backend.
func (b *Backend) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		for batch, err := range b.below.Watch(ctx, prefix, after) {
			for i := range batch.Events {
				b.decodeEvent(ctx, &batch.Events[i])
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

// decodeEvent decodes the values of an event, unless they are known from its write.
func (b *Backend) decodeEvent(ctx context.Context, e *kv.Event) {
	if w := b.recent.of(e); w != nil {
		e.Value = w.plain
		if w.was != nil && w.expect == e.PrevRevision {
			e.Prev = w.was
			return
		}
	} else {
		e.Value = b.decode(ctx, e.Key, e.Value)
	}
	e.Prev = b.decode(ctx, e.Key, e.Prev)
}

// Outdated implements kv.Former.
func (b *Backend) Outdated(ctx context.Context, key string) (bool, error) {
	if below, ok := kv.As[kv.Former](b.below); ok {
		if outdated, err := below.Outdated(ctx, key); outdated || err != nil {
			return outdated, err
		}
	}
	t, ok := b.transformer.(Former)
	if !ok {
		return false, nil
	}
	r, err := b.below.Get(ctx, key, kv.Latest)
	if err != nil {
		return false, err
	}
	return t.Outdated(ctx, key, r.Value)
}

// Revision implements kv.Backend.
func (b *Backend) Revision(ctx context.Context) (int64, error) { return b.below.Revision(ctx) }

// Compact implements kv.Backend.
func (b *Backend) Compact(ctx context.Context, revision int64) error {
	return b.below.Compact(ctx, revision)
}

// Close implements kv.Backend.
func (b *Backend) Close() error { return b.below.Close() }
