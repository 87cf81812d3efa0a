package watchcache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// loader loads values with a function.
type loader func(key string, revision int64) ([]byte, error)

func (l loader) Load(_ context.Context, key string, revision int64) ([]byte, error) {
	return l(key, revision)
}

// An error of a load is that of the reader, and the next reader loads again. So does a value that cannot be decoded
// any more.
func TestReadFails(t *testing.T) {
	var store *memkv.Store
	var failure atomic.Pointer[error]
	f := start(t, watchcache.Options{HotBytes: 1}, func(b kv.Backend) kv.Backend {
		store = b.(*memkv.Store)
		return &hooked{Backend: b, loader: loader(func(key string, revision int64) ([]byte, error) {
			if err := failure.Load(); err != nil && *err == nil {
				return []byte("encrypted"), nil
			} else if err != nil {
				return nil, *err
			}
			return again{store}.Load(t.Context(), key, revision)
		})}
	})
	f.put(crontabs+"a", "1")
	o := f.snapshot(crontabs, kv.Latest).Get(crontabs + "a")
	damage := error(&kv.CorruptError{Where: "a page", Reason: "it is damaged"})
	for _, err := range []error{damage, kv.ErrClosed} {
		failure.Store(&err)
		if _, got := o.Read(); !errors.Is(got, err) {
			t.Errorf("read: %v, want %v", got, err)
		}
		if _, got := o.Memo("key", watchcache.Validity{}, func() ([]byte, error) { return nil, nil }); !errors.Is(got, err) {
			t.Errorf("memo: %v, want %v", got, err)
		}
	}
	failure.Store(new(error))
	if e, err := o.Read(); err == nil || o.Err() != nil {
		t.Errorf("a value that is no object is read as %+v, %v", e, o.Err())
	}
	failure.Store(nil)
	if said(o) != "1" {
		t.Errorf("later it is %s", said(o))
	}
}

// Concurrent readers share one load.
func TestReadersShareALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads, hold := 0, make(chan struct{})
		value := document(crontabs+"a", "1")
		f := start(t, watchcache.Options{HotBytes: 1}, func(b kv.Backend) kv.Backend {
			return &hooked{Backend: b, loader: loader(func(string, int64) ([]byte, error) {
				loads++
				<-hold
				return value, nil
			})}
		})
		f.put(crontabs+"a", "1")
		o := f.snapshot(crontabs, kv.Latest).Get(crontabs + "a")
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if said(o) != "1" {
					t.Errorf("it is %s", said(o))
				}
			})
		}
		synctest.Wait()
		close(hold)
		all.Wait()
		if loads != 1 {
			t.Errorf("%d loads", loads)
		}
	})
}

// A reader whose value was replaced and compacted gets it from the event, for which it waits.
func TestReadWaitsForTheEvent(t *testing.T) {
	var store *memkv.Store
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	var holding atomic.Bool
	f := start(t, watchcache.Options{HotBytes: 1}, func(b kv.Backend) kv.Backend {
		store = b.(*memkv.Store)
		return &hooked{Backend: b, loader: again{store}, feed: func(kv.Batch) error {
			if holding.Load() {
				held <- struct{}{}
				<-hold
			}
			return nil
		}}
	})
	f.put(crontabs+"a", "1")
	o := f.snapshot(crontabs, kv.Latest).Get(crontabs + "a")
	holding.Store(true)
	revision := write(t, store, crontabs+"a", document(crontabs+"a", "2"))
	<-held
	holding.Store(false)
	if err := store.Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() { read <- said(o) }()
	close(hold)
	if got := <-read; got != "1" {
		t.Errorf("it is %s", got)
	}
}
