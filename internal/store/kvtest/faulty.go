package kvtest

import (
	"context"
	"iter"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// An Operation is a method of a backend.
type Operation string

// The operations that can fail. Delivery is each batch of a watch.
const (
	Get      Operation = "Get"
	List     Operation = "List"
	Commit   Operation = "Commit"
	Watch    Operation = "Watch"
	Delivery Operation = "Delivery"
	Revision Operation = "Revision"
	Compact  Operation = "Compact"
)

// A Call is one use of a backend.
type Call struct {
	Operation Operation
	Key       string // of Get and Commit; the prefix of List, Watch and Delivery
	Revision  int64  // the requested revision; of a Delivery, the revision of the batch
}

// A Fault is the fault of a call. The zero value is none.
type Fault struct {
	// Delay is the wait before the call.
	Delay time.Duration
	// Err is the result in place of the call.
	Err error
	// Lost makes the call and then returns Err, as when the response of a remote store is lost.
	Lost bool
}

// Faulty is a backend in which calls go wrong as planned.
type Faulty struct {
	backend kv.Backend
	plan    func(Call) Fault
}

var _ kv.Backend = (*Faulty)(nil)

// NewFaulty wraps a backend. plan is called for every call, possibly concurrently.
func NewFaulty(b kv.Backend, plan func(Call) Fault) *Faulty {
	return &Faulty{backend: b, plan: plan}
}

// do makes a call with its fault.
func (f *Faulty) do(ctx context.Context, c Call, call func() error) error {
	fault := f.plan(c)
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if fault.Err != nil && !fault.Lost {
		return fault.Err
	}
	if err := call(); err != nil {
		return err
	}
	return fault.Err
}

// Get implements kv.Backend.
func (f *Faulty) Get(ctx context.Context, key string, revision int64) (r kv.Record, err error) {
	err = f.do(ctx, Call{Get, key, revision}, func() error {
		r, err = f.backend.Get(ctx, key, revision)
		return err
	})
	return zeroOn(err, r), err
}

// List implements kv.Backend.
func (f *Faulty) List(ctx context.Context, r kv.Range) (p kv.Page, err error) {
	err = f.do(ctx, Call{List, r.Prefix, r.Revision}, func() error {
		p, err = f.backend.List(ctx, r)
		return err
	})
	return zeroOn(err, p), err
}

// Commit implements kv.Backend.
func (f *Faulty) Commit(ctx context.Context, w kv.Write) (revision int64, err error) {
	err = f.do(ctx, Call{Commit, w.Key, w.Expect}, func() error {
		revision, err = f.backend.Commit(ctx, w)
		return err
	})
	return zeroOn(err, revision), err
}

// Revision implements kv.Backend.
func (f *Faulty) Revision(ctx context.Context) (revision int64, err error) {
	err = f.do(ctx, Call{Operation: Revision}, func() error {
		revision, err = f.backend.Revision(ctx)
		return err
	})
	return zeroOn(err, revision), err
}

// Compact implements kv.Backend.
func (f *Faulty) Compact(ctx context.Context, revision int64) error {
	return f.do(ctx, Call{Operation: Compact, Revision: revision}, func() error {
		return f.backend.Compact(ctx, revision)
	})
}

// Watch implements kv.Backend. A fault of a Delivery ends the watch with its error; with Lost, the
// batch is delivered first.
func (f *Faulty) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		if err := f.do(ctx, Call{Watch, prefix, after}, func() error { return nil }); err != nil {
			yield(kv.Batch{}, err)
			return
		}
		for batch, err := range f.backend.Watch(ctx, prefix, after) {
			if err != nil {
				yield(batch, err)
				return
			}
			stopped := false
			fault := f.do(ctx, Call{Delivery, prefix, batch.Revision}, func() error {
				stopped = !yield(batch, nil)
				return nil
			})
			if stopped {
				return
			}
			if fault != nil {
				yield(kv.Batch{}, fault)
				return
			}
		}
	}
}

// Close implements kv.Backend. It does not fail.
func (f *Faulty) Close() error { return f.backend.Close() }

// zeroOn returns the zero value with an error.
func zeroOn[T any](err error, value T) (result T) {
	if err == nil {
		result = value
	}
	return result
}
