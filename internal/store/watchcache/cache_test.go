package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// The first use loads a resource, once. Writes during the load are neither lost nor delivered twice.
func TestLoadWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backend *hooked
		before, after := make(chan struct{}), make(chan struct{})
		f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
			backend = &hooked{
				Backend: b,
				list:    func(kv.Range) error { <-before; return nil },
				listed:  func(kv.Range) { <-after },
			}
			return backend
		})
		f.put(crontabs+"a", "one")
		f.put(crontabs+"b", "one")
		var users sync.WaitGroup
		for range 5 {
			users.Go(func() {
				s := f.snapshot(crontabs, kv.Latest)
				if got, want := describe(s, crontabs), "6: a=two b=three d=one"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
		synctest.Wait()
		f.put(crontabs+"a", "two") // seen by the feed and by the list
		close(before)
		synctest.Wait()
		f.put(crontabs+"b", "three") // seen by the feed only
		f.put(crontabs+"d", "one")
		close(after)
		users.Wait()
		if n := backend.lists.Load(); n != 1 {
			t.Errorf("loaded %d times", n)
		}

		w := f.watch(crontabs, 1)
		var told []string
		for len(told) < 5 {
			b, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range b.Events {
				told = append(told, describeEvent(e, crontabs))
			}
		}
		want := []string{
			"2 a: nothing -> one", "3 b: nothing -> one", "4 a: one -> two", "5 b: one -> three", "6 d: nothing -> one",
		}
		if fmt.Sprint(told) != fmt.Sprint(want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// A failed load fails all waiting users; the next user retries. A user that leaves fails no other.
func TestLoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("the disk is on fire")
		release := make(chan error)
		f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
			return &hooked{Backend: b, list: func(kv.Range) error { return <-release }}
		})
		use := func(ctx context.Context) <-chan error {
			result := make(chan error, 1)
			go func() {
				_, err := f.cache.Resource(crontabs).Get(ctx, crontabs+"a")
				result <- err
			}()
			synctest.Wait()
			return result
		}
		impatient, leave := context.WithCancel(t.Context())
		first, second := use(impatient), use(t.Context())
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first user got %v", err)
		}
		release <- failure
		if err := <-second; !errors.Is(err, failure) {
			t.Errorf("the second user got %v", err)
		}
		third := use(t.Context())
		release <- nil
		if err := <-third; err != nil {
			t.Errorf("the third user got %v", err)
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, watchcache.Options{}, nil)
		f.synced(1)
		reached := make(chan int64, 4)
		for _, revision := range []int64{4, 2, 3, 3} {
			go func() {
				f.synced(revision)
				reached <- revision
			}()
		}
		// No waiter is woken too early, and a canceled one is removed.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.cache.Wait(ctx, 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting in vain gave %v", err)
		}
		for _, want := range []string{"[2]", "[3 3]", "[4]"} {
			f.put(crontabs+"a", "")
			synctest.Wait()
			var got []int64
			for len(reached) > 0 {
				got = append(got, <-reached)
			}
			if fmt.Sprint(got) != want {
				t.Errorf("reached %v, want %s", got, want)
			}
		}
		write(t, f.store, crontabs+"a", nil)
		if revision, err := f.cache.Fresh(t.Context()); revision != 5 || err != nil || f.cache.Revision() != 5 {
			t.Errorf("fresh at %d, %v, and the cache at %d", revision, err, f.cache.Revision())
		}
	})
}

// No wait outlasts the end of the cache, or its own context before Run.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, watchcache.Options{}, nil)
		f.put(crontabs+"a", "one")
		w := f.watch(crontabs, kv.Latest)
		results := make(chan error, 2)
		go func() { results <- f.cache.Wait(t.Context(), 100) }()
		go func() { _, err := w.Next(t.Context()); results <- err }()
		synctest.Wait()
		if err := f.stop(); err != nil {
			t.Errorf("Run returned %v", err)
		}
		for range 2 {
			if err := <-results; !errors.Is(err, watchcache.ErrStopped) {
				t.Errorf("who waited got %v", err)
			}
		}
		if _, err := w.Next(t.Context()); !errors.Is(err, watchcache.ErrStopped) {
			t.Errorf("the next event is %v", err)
		}
		if _, err := f.cache.Resource("/registry/secrets/").Snapshot(t.Context(), kv.Latest); !errors.Is(err, watchcache.ErrStopped) {
			t.Errorf("loading gave %v", err)
		}
		if err := f.cache.Run(t.Context()); err == nil {
			t.Error("a cache ran twice")
		}

		idle := watchcache.New(f.store, watchcache.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := idle.Resource(crontabs).Get(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a cache that does not run gave %v", err)
		}
	})
}

// A load under way does not outlive Run.
func TestStopWhileLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
			return &hooked{Backend: b, list: func(kv.Range) error { time.Sleep(time.Minute); return nil }}
		})
		result := make(chan error)
		go func() {
			_, err := f.cache.Resource(crontabs).Get(t.Context(), crontabs+"a")
			result <- err
		}()
		synctest.Wait()
		go f.stop()
		if err := <-result; !errors.Is(err, watchcache.ErrStopped) {
			t.Errorf("got %v", err)
		}
	})
}

// A watcher of a quiet namespace in a busy resource is not woken, and is not too old at its first
// event.
func TestQuietWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backend *hooked
		f := start(t, watchcache.Options{HistoryEvents: 5}, func(b kv.Backend) kv.Backend {
			backend = &hooked{Backend: b}
			return backend
		})
		f.put(crontabs+"busy/a", "0")
		w, err := f.cache.Resource(crontabs).Watch(t.Context(), crontabs+"quiet/", kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan string)
		go func() {
			b, err := w.Next(t.Context())
			if err != nil {
				result <- err.Error()
				return
			}
			result <- describeEvent(b.Events[0], crontabs)
		}()
		synctest.Wait()
		var last int64
		for i := range 20 {
			last = f.put(crontabs+"busy/a", fmt.Sprint(i))
			synctest.Wait()
		}
		if err := f.store.Compact(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		f.put(crontabs+"quiet/a", "one")
		if got, want := <-result, "23 quiet/a: nothing -> one"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		if n := backend.watches.Load(); n != 0 {
			t.Errorf("read the backend's history %d times", n)
		}
	})
}

// A failed feed resumes at its last revision.
func TestFeedInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
			return &hooked{Backend: b, feed: func(kv.Batch) error {
				if down.Load() {
					return errors.New("no route to host")
				}
				return nil
			}}
		})
		f.put(crontabs+"a", "one")
		w := f.watch(crontabs, kv.Latest)
		down.Store(true)
		write(t, f.store, crontabs+"a", document("a", "two"))
		write(t, f.store, crontabs+"a", document("a", "three"))
		time.Sleep(time.Minute)
		if s := f.snapshot(crontabs, kv.Latest); s.Revision() != 2 {
			t.Errorf("read %s", describe(s, crontabs))
		}
		down.Store(false)
		f.synced(4)
		b, err := w.Next(t.Context())
		if err != nil || len(b.Events) != 2 {
			t.Errorf("told %v, %v", b, err)
		}
	})
}

// If the backend has compacted the events of an interruption of the feed, reads continue with the
// present state, and watchers get an error.
func TestFeedCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
			return &hooked{Backend: b, feed: func(kv.Batch) error {
				if down.Load() {
					return errors.New("no route to host")
				}
				return nil
			}}
		})
		f.put(crontabs+"a", "one")
		f.put(crontabs+"b", "one")
		before := f.snapshot(crontabs, kv.Latest)
		behind, waiting := f.watch(crontabs, 2), f.watch(crontabs, kv.Latest)
		result := make(chan error)
		go func() { _, err := waiting.Next(t.Context()); result <- err }()
		synctest.Wait()
		down.Store(true)
		write(t, f.store, crontabs+"a", document("a", "two"))
		write(t, f.store, crontabs+"c", document("c", "one"))
		write(t, f.store, crontabs+"b", nil)
		if err := f.store.Compact(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		down.Store(false)
		f.synced(6)

		var compacted *kv.CompactedError
		if err := <-result; !errors.As(err, &compacted) {
			t.Errorf("a watcher that waited got %v", err)
		}
		if _, err := behind.Next(t.Context()); !errors.As(err, &compacted) {
			t.Errorf("a watcher that was behind got %v", err)
		}
		if got, want := describe(f.snapshot(crontabs, kv.Latest), crontabs), "6: a=two c=one"; got != want {
			t.Errorf("read %s, want %s", got, want)
		}
		if got, want := describe(before, crontabs), "3: a=one b=one"; got != want {
			t.Errorf("a snapshot changed to %s, from %s", got, want)
		}
		b, err := f.watch(crontabs, 5).Next(t.Context())
		if err != nil || describeEvent(b.Events[0], crontabs) != "6 b: one -> nothing" {
			t.Errorf("resuming from what is still kept: %v, %v", b, err)
		}
	})
}

// A load is discarded if the feed is interrupted meanwhile, because later events may be missing.
func TestFeedCutOffWhileLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		listed := make(chan struct{})
		f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
			return &hooked{
				Backend: b,
				listed:  func(kv.Range) { <-listed },
				feed: func(kv.Batch) error {
					if down.Load() {
						return errors.New("no route to host")
					}
					return nil
				},
			}
		})
		f.put(crontabs+"a", "one")
		read := make(chan string)
		go func() { read <- describe(f.snapshot(crontabs, kv.Latest), crontabs) }()
		synctest.Wait()
		down.Store(true)
		write(t, f.store, crontabs+"a", document("a", "two"))
		if err := f.store.Compact(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		down.Store(false)
		f.synced(3)
		close(listed)
		if got, want := <-read, "3: a=two"; got != want {
			t.Errorf("read %s, want %s", got, want)
		}
	})
}

// A store that is at an older revision than it was is not served.
func TestStoreGoesBack(t *testing.T) {
	for name, failure := range map[string]error{
		"while followed": &kv.FutureError{Asked: 3, Newest: 2},
		"while cut off":  &kv.CompactedError{Asked: 3, Oldest: 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var restored atomic.Bool
				f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
					return &hooked{
						Backend: b,
						revision: func(r int64) int64 {
							if restored.Load() {
								return 2
							}
							return r
						},
						feed: func(kv.Batch) error {
							if restored.Load() {
								return failure
							}
							return nil
						},
					}
				})
				f.put(crontabs+"a", "one")
				f.put(crontabs+"a", "two")
				restored.Store(true)
				write(t, f.store, crontabs+"a", document("a", "three"))
				if err := f.cache.Wait(t.Context(), 4); !errors.Is(err, watchcache.ErrStopped) {
					t.Errorf("waiting gave %v", err)
				}
				err := f.stop()
				const want = "the store was put back: it is at revision 2 and was at 3 before"
				if err == nil || err.Error() != want {
					t.Errorf("Run returned %v", err)
				}
			})
		})
	}
}

func TestClosedStore(t *testing.T) {
	f := start(t, watchcache.Options{}, nil)
	f.synced(1)
	f.store.Close()
	if err := f.cache.Wait(t.Context(), 2); !errors.Is(err, watchcache.ErrStopped) {
		t.Errorf("waiting gave %v", err)
	}
	if err := f.stop(); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Run returned %v", err)
	}
}

// Prefixes that are not part of the resource reach no other's objects.
func TestPrefixes(t *testing.T) {
	f := start(t, watchcache.Options{}, nil)
	f.put("/registry/secrets/a/b", "secret")
	r := f.cache.Resource(crontabs)
	if o, err := r.Get(t.Context(), "/registry/secrets/a/b"); o != nil || err != nil {
		t.Errorf("got %v, %v", o, err)
	}
	if _, err := r.Watch(t.Context(), "/registry/secrets/", 1); err == nil {
		t.Error("watched another resource")
	}
	for o := range f.snapshot(crontabs, kv.Latest).Scan("/registry/secrets/", "") {
		t.Errorf("scanned %s", o.Key)
	}
	if _, err := f.cache.Resource("/registry/secrets").Get(t.Context(), "/registry/secrets/a/b"); err == nil {
		t.Error("a prefix without a slash at its end was taken")
	}
}
