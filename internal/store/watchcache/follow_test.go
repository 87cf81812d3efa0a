package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// follow follows all of a cache, and checks that it is as a watch must be.
func (f *fixture) follow(after int64) (next func() (kv.Batch, error), stop func()) {
	const prefix = "/registry/"
	pull, stop := iter.Pull2(kvtest.CheckWatch(f.Errorf, prefix, after, f.cache.Follow(f.Context(), prefix, after)))
	return func() (kv.Batch, error) {
		batch, err, _ := pull()
		return batch, err
	}, stop
}

// Follow yields events from before the start of the cache, and new ones. It needs a watch of the store
// only for the earlier ones.
func TestFollow(t *testing.T) {
	var watches atomic.Int64
	f := start(t, watchcache.Options{}, counting(&watches))
	var revisions []int64
	for i := range 5 {
		revisions = append(revisions, f.put(fmt.Sprintf("%sdefault/%d", crontabs, i), "v"))
	}
	write(f, f.store, "/elsewhere/x", []byte("v"))
	next, stop := f.follow(revisions[1])
	defer stop()
	for i := 2; i < 10; i++ {
		if i >= 5 {
			revisions = append(revisions, f.put(fmt.Sprintf("%sdefault/%d", crontabs, i), "v"))
		}
		batch := kv.Batch{}
		for len(batch.Events) == 0 {
			var err error
			if batch, err = next(); err != nil {
				t.Fatal(err)
			}
		}
		for n, e := range batch.Events {
			if e.Revision != revisions[i+n] || !strings.HasSuffix(e.Key, fmt.Sprint(i+n)) {
				t.Fatalf("%s at %d, want that of %d at %d", e.Key, e.Revision, i+n, revisions[i+n])
			}
		}
		i += len(batch.Events) - 1
		if i >= 5 && watches.Load() != 1 {
			t.Fatalf("there are %d watches of the store", watches.Load())
		}
	}
}

// counting counts the watches of a store that are ranged over.
func counting(watches *atomic.Int64) func(kv.Backend) kv.Backend {
	return func(b kv.Backend) kv.Backend { return &counted{b, watches} }
}

type counted struct {
	kv.Backend
	watches *atomic.Int64
}

func (c *counted) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		c.watches.Add(1)
		defer c.watches.Add(-1)
		for batch, err := range c.Backend.Watch(ctx, prefix, after) {
			if !yield(batch, err) {
				return
			}
		}
	}
}

// A slow follower misses nothing: it reads the rest from the store.
func TestFollowFarBehind(t *testing.T) {
	const writes = 40
	f := start(t, watchcache.Options{}, nil)
	from := f.put(crontabs+"default/first", "v")
	next, stop := f.follow(from)
	defer stop()
	large := strings.Repeat("x", 1<<20)
	last := f.put(crontabs+"default/00", large)
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i := 1; i <= writes; i++ {
		last = f.put(fmt.Sprintf("%sdefault/%02d", crontabs, i), large)
	}
	for {
		batch, err := next()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			if e.Key == crontabs+"default/00" {
				continue // it may have come first
			}
			if seen++; !strings.HasSuffix(e.Key, fmt.Sprintf("/%02d", seen)) {
				t.Fatalf("event %d is of %s", seen, e.Key)
			}
		}
		if batch.Revision >= last {
			break
		}
	}
	if seen != writes {
		t.Errorf("%d events, want %d", seen, writes)
	}
}

// If the store has compacted the missing events, followers get an error.
func TestFollowOverAGap(t *testing.T) {
	cut := make(chan struct{})
	var once atomic.Bool
	f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
		return kvtest.NewFaulty(b, func(c kvtest.Call) kvtest.Fault {
			if c.Operation != kvtest.Delivery {
				return kvtest.Fault{}
			}
			select {
			case <-cut:
				if once.CompareAndSwap(false, true) {
					return kvtest.Fault{Err: &kv.CompactedError{Asked: c.Revision, Oldest: c.Revision}}
				}
			default:
			}
			return kvtest.Fault{}
		})
	})
	next, stop := f.follow(f.put(crontabs+"default/a", "v"))
	defer stop()
	f.put(crontabs+"default/b", "v")
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	close(cut)
	write(f, f.store, crontabs+"default/c", document(crontabs+"default/c", "v"))
	var compacted *kv.CompactedError
	if _, err := next(); !errors.As(err, &compacted) {
		t.Errorf("got %v, want that something is missing", err)
	}
}

// Follow fails on a stopped cache.
func TestFollowWhenItStops(t *testing.T) {
	f := start(t, watchcache.Options{}, nil)
	from := f.put(crontabs+"default/a", "v")
	next, stop := f.follow(from - 1)
	defer stop()
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := next(); !errors.Is(err, watchcache.ErrStopped) {
		t.Errorf("got %v", err)
	}
	for _, err := range f.cache.Follow(t.Context(), "/registry/", from) {
		if !errors.Is(err, watchcache.ErrStopped) {
			t.Errorf("got %v", err)
		}
	}
}

// All callers that wait for a failing cache get the same error, in any order.
func TestAllAreToldWhyItStopped(t *testing.T) {
	restored := &kv.RestoredError{Was: 9, Now: 7}
	fail := make(chan struct{})
	f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
		return kvtest.NewFaulty(b, func(c kvtest.Call) kvtest.Fault {
			select {
			case <-fail:
				return kvtest.Fault{Err: restored}
			default:
				return kvtest.Fault{}
			}
		})
	})
	from := f.put(crontabs+"default/a", "v")
	next, stop := f.follow(from - 1)
	defer stop()
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() { waited <- f.cache.Wait(t.Context(), from+100) }()
	close(fail)
	write(f, f.store, crontabs+"default/b", document(crontabs+"default/b", "v"))
	_, followed := next()
	for what, err := range map[string]error{"who waits": <-waited, "who follows": followed, "who runs it": f.stop()} {
		var why *kv.RestoredError
		if !errors.As(err, &why) || *why != *restored {
			t.Errorf("%s: got %v, want %v", what, err, restored)
		}
	}
}
