package watchcache_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/transform"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// locked decodes no value that has the text "sealed" until it is open.
type locked struct{ open atomic.Bool }

func (l *locked) Encode(_ context.Context, _ string, plain []byte) ([]byte, error) { return plain, nil }

func (l *locked) Decode(_ context.Context, _ string, stored []byte) []byte {
	if !l.open.Load() && bytes.Contains(stored, []byte("sealed")) {
		return []byte("unreadable")
	}
	return stored
}

// Objects that could not be decoded are read again: in a resource in use, in its recent events, and in a
// batch that was decoded before and is applied after. Followers start again, and watchers of the
// resource end. Other resources stay.
func TestReread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locked{}
		deliver := make(chan struct{}, 10)
		f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend {
			return &hooked{Backend: transform.New(b, l, transform.Options{}), feed: func(batch kv.Batch) error {
				if len(batch.Events) > 0 {
					<-deliver
				}
				return nil
			}}
		})
		const others = "/registry/secrets/"
		for range 3 {
			deliver <- struct{}{}
		}
		f.put(others+"a", "plain")
		f.put(crontabs+"a", "sealed")
		resource := f.cache.Resource(crontabs)
		if got := describe(f.snapshot(crontabs, kv.Latest), crontabs); got != "3: a=unreadable" {
			t.Fatalf("read %s", got)
		}
		watchers := map[string]*watchcache.Watcher{crontabs: f.watch(crontabs, kv.Latest), others: f.watch(others, kv.Latest)}
		ended := make(chan error, 1)
		go func() {
			for _, err := range f.cache.Follow(t.Context(), "/", 3) {
				if err != nil {
					ended <- err
				}
			}
		}()
		f.put(crontabs+"gone", "plain")
		late := write(t, f.store, crontabs+"b", document("b", "sealed"))
		synctest.Wait() // the batch is decoded

		l.open.Store(true)
		f.cache.Reread()
		if resource.Changed() != 0 {
			t.Error("the resource is not read anew")
		}
		var compacted *kv.CompactedError
		if err := <-ended; !errors.As(err, &compacted) {
			t.Errorf("a follower ended with %v", err)
		}
		deliver <- struct{}{}
		f.synced(late)
		if got := describe(f.snapshot(crontabs, kv.Latest), crontabs); got != "5: a=sealed b=sealed gone=plain" {
			t.Errorf("read %s", got)
		}
		if _, err := watchers[crontabs].Next(t.Context()); err != nil {
			t.Errorf("the event before: %v", err)
		}
		if _, err := watchers[crontabs].Next(t.Context()); !errors.Is(err, watchcache.ErrGone) {
			t.Errorf("a watcher of the resource got %v", err)
		}
		deliver <- struct{}{}
		f.put(others+"b", "plain")
		if b, err := watchers[others].Next(t.Context()); err != nil || len(b.Events) != 1 {
			t.Errorf("a watcher of another resource got %v, %v", b, err)
		}
	})
}

// Objects that cannot be decoded any more have an error, and their watchers go on.
func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locked{}
		l.open.Store(true)
		f := start(t, watchcache.Options{}, func(b kv.Backend) kv.Backend { return transform.New(b, l, transform.Options{}) })
		f.put(crontabs+"a", "sealed")
		f.put(crontabs+"b", "plain")
		f.put("/registry/secrets/a", "sealed")
		before, w := f.snapshot(crontabs, kv.Latest), f.watch(crontabs, kv.Latest)
		f.snapshot("/registry/secrets/", kv.Latest)

		l.open.Store(false)
		f.cache.Reread() // the feed looks again after its next batch
		for _, lost := range []bool{false, true} {
			if got := describe(f.snapshot(crontabs, kv.Latest), crontabs); got != "4: a=sealed b=plain" {
				t.Errorf("before it is confirmed: %s", got)
			}
			affected := func(prefix string) bool { return prefix == crontabs }
			if err := f.cache.Verify(t.Context(), affected, func(context.Context, string) bool { return lost }); err != nil {
				t.Fatal(err)
			}
		}
		if got := describe(f.snapshot(crontabs, kv.Latest), crontabs); got != "4: a=unreadable b=plain" {
			t.Errorf("read %s", got)
		}
		if got := describe(before, crontabs); got != "4: a=sealed b=plain" {
			t.Errorf("the snapshot from before became %s", got)
		}
		if got := describe(f.snapshot("/registry/secrets/", kv.Latest), "/registry/secrets/"); got != "4: a=sealed" {
			t.Errorf("another resource became %s", got)
		}
		for _, name := range []string{"c", "d"} {
			f.put(crontabs+name, "plain")
			if b, err := w.Next(t.Context()); err != nil || len(b.Events) != 1 {
				t.Errorf("%s: the watcher got %v, %v", name, b, err)
			}
		}
	})
}
