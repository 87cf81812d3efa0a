package kvtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/memkv"
)

func noFaults(kvtest.Call) kvtest.Fault { return kvtest.Fault{} }

func TestFaultyWithoutFaultsKeepsTheContract(t *testing.T) {
	kvtest.Run(t, func(testing.TB) kv.Backend {
		return kvtest.NewFaulty(memkv.New(memkv.Options{}), noFaults)
	})
}

// only plans a fault for one operation.
func only(o kvtest.Operation, f kvtest.Fault) func(kvtest.Call) kvtest.Fault {
	return func(c kvtest.Call) kvtest.Fault {
		if c.Operation == o {
			return f
		}
		return kvtest.Fault{}
	}
}

func TestFaultyReturnsTheErrorOfThePlan(t *testing.T) {
	oops := errors.New("oops")
	ctx := t.Context()
	calls := map[kvtest.Operation]func(kv.Backend) error{
		kvtest.Get:      func(b kv.Backend) error { _, err := b.Get(ctx, "/a", 0); return err },
		kvtest.List:     func(b kv.Backend) error { _, err := b.List(ctx, kv.Range{}); return err },
		kvtest.Revision: func(b kv.Backend) error { _, err := b.Revision(ctx); return err },
		kvtest.Compact:  func(b kv.Backend) error { return b.Compact(ctx, 1) },
		kvtest.Watch:    firstError,
		kvtest.Delivery: firstError,
		kvtest.Commit:   func(b kv.Backend) error { return create(ctx, b, "/b") },
	}
	for broken, call := range calls {
		for _, lost := range []bool{false, true} {
			b := memkv.New(memkv.Options{})
			f := kvtest.NewFaulty(b, only(broken, kvtest.Fault{Err: oops, Lost: lost}))
			if broken != kvtest.Commit {
				if err := create(ctx, f, "/a"); err != nil {
					t.Errorf("a write fails when %s is broken: %v", broken, err)
				}
			}
			if err := call(f); !errors.Is(err, oops) {
				t.Errorf("%s, broken, gives %v", broken, err)
			}
			_, err := b.Get(ctx, "/b", kv.Latest)
			if happened, want := err == nil, broken == kvtest.Commit && lost; happened != want {
				t.Errorf("%s, broken, lost %v: the write happened is %v, want %v", broken, lost, happened, want)
			}
		}
	}
}

func create(ctx context.Context, b kv.Backend, key string) error {
	_, err := b.Commit(ctx, kv.Write{Key: key, Value: []byte("v")})
	return err
}

// firstError watches until the first error.
func firstError(b kv.Backend) error {
	for _, err := range b.Watch(context.Background(), "/", 1) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestFaultyDelivery(t *testing.T) {
	b := memkv.New(memkv.Options{})
	if err := create(t.Context(), b, "/a"); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{false, true} {
		f := kvtest.NewFaulty(b, only(kvtest.Delivery, kvtest.Fault{Err: kv.ErrClosed, Lost: lost}))
		events := 0
		for batch := range kvtest.CheckWatch(t.Errorf, "/", 1, f.Watch(t.Context(), "/", 1)) {
			events += len(batch.Events)
		}
		if want := map[bool]int{false: 0, true: 1}[lost]; events != want {
			t.Errorf("lost %v: %d events delivered, want %d", lost, events, want)
		}
	}
}

func TestFaultyDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := kvtest.NewFaulty(memkv.New(memkv.Options{}), only(kvtest.Commit, kvtest.Fault{Delay: time.Minute}))
		start := time.Now()
		if err := create(t.Context(), f, "/a"); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != time.Minute {
			t.Errorf("the call took %v, want a minute", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := create(ctx, f, "/b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call whose context ends while it is delayed: %v", err)
		}
	})
}
