package etcd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/anykind/anykind/internal/store/kv"
)

// A patient store retries when the store is unavailable, and determines the outcome of a write when it
// is unknown. For that it adds a unique tag to each value, and hides the tag from readers. (Of two
// concurrent deletes of a record, both may report success.)
type patient struct {
	kv.Backend
	retries *atomic.Int64
}

const tagSize = 8

func tagged(value []byte) []byte {
	return binary.BigEndian.AppendUint64(slices.Clone(value), rand.Uint64())
}

func untagged(value []byte) []byte {
	if value == nil {
		return nil
	}
	return value[:len(value)-tagSize]
}

// again reports whether to retry a call, after a delay.
func (p *patient) again(ctx context.Context, err error) bool {
	if !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrUncertain) || ctx.Err() != nil {
		return false
	}
	p.retries.Add(1)
	return pause(ctx) == nil
}

func (p *patient) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	for {
		r, err := p.Backend.Get(ctx, key, revision)
		if !p.again(ctx, err) {
			r.Value = untagged(r.Value)
			return r, err
		}
	}
}

func (p *patient) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	for {
		page, err := p.Backend.List(ctx, r)
		if !p.again(ctx, err) {
			for i := range page.Records {
				page.Records[i].Value = untagged(page.Records[i].Value)
			}
			return page, err
		}
	}
}

func (p *patient) Revision(ctx context.Context) (int64, error) {
	for {
		revision, err := p.Backend.Revision(ctx)
		if !p.again(ctx, err) {
			return revision, err
		}
	}
}

func (p *patient) Compact(ctx context.Context, revision int64) error {
	for {
		if err := p.Backend.Compact(ctx, revision); !p.again(ctx, err) {
			return err
		}
	}
}

func (p *patient) Commit(ctx context.Context, w kv.Write) (int64, error) {
	before, err := p.Revision(ctx)
	if err != nil {
		return 0, err
	}
	if w.Was = nil; w.Value != nil {
		w.Value = tagged(w.Value)
	}
	w.With = slices.Clone(w.With)
	for i := range w.With {
		if c := &w.With[i]; c.Value != nil {
			c.Value = tagged(c.Value)
		}
	}
	for unknown := false; ; {
		revision, err := p.Backend.Commit(ctx, w)
		unknown = unknown || errors.Is(err, kv.ErrUncertain)
		if p.again(ctx, err) {
			continue
		}
		var conflict *kv.ConflictError
		switch {
		case !errors.As(err, &conflict):
			if err != nil && unknown {
				err = kv.ErrUncertain
			}
			return revision, err
		case unknown:
			// The write can no longer happen: the key or a guard has changed. It may have happened
			// before.
			if happened, err := p.find(ctx, w, before); happened != 0 || err != nil {
				return happened, err
			}
		}
		told := *conflict
		told.Actual.Value = untagged(told.Actual.Value)
		return 0, &told
	}
}

// find returns the revision of a write after a revision, 0 if it did not happen.
func (p *patient) find(ctx context.Context, w kv.Write, after int64) (int64, error) {
	newest, err := p.Revision(ctx)
	if err != nil {
		return 0, err
	}
	for batch, err := range p.watch(ctx, w.Key, after) {
		if err != nil {
			return 0, fmt.Errorf("finding out what became of a write: %w", err)
		}
		for _, e := range batch.Events {
			if e.Key == w.Key && e.PrevRevision == w.Expect && (e.Value == nil) == (w.Value == nil) && slices.Equal(e.Value, w.Value) {
				return e.Revision, nil
			}
		}
		if batch.Revision >= newest {
			break
		}
	}
	return 0, nil
}

func (p *patient) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		for batch, err := range p.watch(ctx, prefix, after) {
			batch.Events = slices.Clone(batch.Events)
			for i := range batch.Events {
				e := &batch.Events[i]
				e.Value, e.Prev = untagged(e.Value), untagged(e.Prev)
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

// watch resumes a watch that ended because the store was unavailable.
func (p *patient) watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		from := after
		if from == kv.Latest {
			var err error
			if from, err = p.Revision(ctx); err != nil {
				yield(kv.Batch{}, err)
				return
			}
		}
		var ended error
		for told := false; ended == nil || p.again(ctx, ended); {
			for batch, err := range p.Backend.Watch(ctx, prefix, from) {
				if ended = err; err != nil {
					break
				}
				if told && batch.Revision <= from {
					continue
				}
				told, from = true, batch.Revision
				if !yield(batch, nil) {
					return
				}
			}
		}
		yield(kv.Batch{}, ended)
	}
}
