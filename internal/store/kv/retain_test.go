package kv_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/memkv"
)

const keep = 5 * time.Minute

// write makes one change and returns its revision.
func write(t *testing.T, b kv.Backend, key string) int64 {
	t.Helper()
	revision, err := b.Commit(t.Context(), kv.Write{Key: key, Value: []byte("v")})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// kept reports whether the state of a revision is readable.
func kept(t *testing.T, b kv.Backend, revision int64) bool {
	t.Helper()
	_, err := b.List(t.Context(), kv.Range{Revision: revision})
	var compacted *kv.CompactedError
	if err != nil && !errors.As(err, &compacted) {
		t.Fatal(err)
	}
	return err == nil
}

// retaining runs Retain until the test ends.
func retaining(t *testing.T, b kv.Backend, failed func(error)) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- kv.Retain(ctx, b, keep, failed) }()
	synctest.Wait()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Retain returned %v", err)
		}
	})
}

func TestRetainKeepsHistoryThatLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memkv.New(memkv.Options{})
		retaining(t, b, nil)
		type written struct {
			at       time.Time
			revision int64
		}
		var writes []written
		for i := range 400 {
			writes = append(writes, written{time.Now(), write(t, b, fmt.Sprint(i))})
			time.Sleep(7 * time.Second)
			synctest.Wait()
			for _, w := range writes {
				age := time.Since(w.at)
				if age < keep && !kept(t, b, w.revision) {
					t.Fatalf("what was written %v ago is gone", age)
				}
				// At most one sample and one step later.
				if age > keep+2*keep/10+7*time.Second && kept(t, b, w.revision) {
					t.Fatalf("what was written %v ago is still kept", age)
				}
			}
		}
	})
}

func TestRetainDoesNothingWhenNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revisions, compactions atomic.Int64
		b := kvtest.NewFaulty(memkv.New(memkv.Options{}), func(c kvtest.Call) kvtest.Fault {
			switch c.Operation {
			case kvtest.Revision:
				revisions.Add(1)
			case kvtest.Compact:
				compactions.Add(1)
			}
			return kvtest.Fault{}
		})
		retaining(t, b, nil)
		write(t, b, "a")
		time.Sleep(10 * keep)
		synctest.Wait()
		revisions.Store(0)
		compactions.Store(0)
		time.Sleep(100 * keep)
		synctest.Wait()
		if got := revisions.Load(); got != 1000 {
			t.Errorf("it asked %d times for the revision in 100 times keep, want 1000", got)
		}
		if got := compactions.Load(); got != 0 {
			t.Errorf("it compacted %d times, and nothing was written", got)
		}
		// The current state stays readable, and later states are compacted.
		before := write(t, b, "b")
		after := write(t, b, "c")
		time.Sleep(2 * keep)
		synctest.Wait()
		if kept(t, b, before) || !kept(t, b, after) {
			t.Error("it did not go on when something happened")
		}
	})
}

func TestRetainTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		mem := memkv.New(memkv.Options{})
		b := kvtest.NewFaulty(mem, func(c kvtest.Call) kvtest.Fault {
			if broken.Load() && c.Operation == kvtest.Compact {
				return kvtest.Fault{Err: kv.ErrFull}
			}
			return kvtest.Fault{}
		})
		var told []error
		retaining(t, b, func(err error) { told = append(told, err) })
		first := write(t, b, "a")
		write(t, b, "b")
		time.Sleep(2 * keep)
		synctest.Wait()
		if len(told) == 0 || !errors.Is(told[0], kv.ErrFull) {
			t.Errorf("it told of %v, want %v", told, kv.ErrFull)
		}
		if !kept(t, b, first) {
			t.Error("it compacted although it could not")
		}
		broken.Store(false)
		time.Sleep(keep / 5)
		synctest.Wait()
		if kept(t, b, first) {
			t.Error("it did not compact once it could")
		}
	})
}

func TestRetainEndsWithTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memkv.New(memkv.Options{})
		ended := make(chan error)
		go func() { ended <- kv.Retain(t.Context(), b, keep, nil) }()
		time.Sleep(keep)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, kv.ErrClosed) {
			t.Errorf("Retain returned %v, want %v", err, kv.ErrClosed)
		}
	})
}
