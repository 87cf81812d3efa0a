package watchcache

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// running returns a cache of an empty store that runs until the end of the test,
// and a function that writes a value of so many bytes and waits until it is seen.
func running(t testing.TB, o Options) (*Cache, func(key string, size int)) {
	store := memkv.New(memkv.Options{})
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	c := New(store, o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; store.Close() })
	return c, func(key string, size int) {
		old, _ := store.Get(ctx, key, kv.Latest)
		revision, err := store.Commit(ctx, kv.Write{Key: key, Value: make([]byte, size), Expect: old.Revision})
		if err == nil {
			err = c.Wait(ctx, revision)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func use(t testing.TB, c *Cache, prefix string) *state {
	r := c.Resource(prefix)
	if _, err := r.Snapshot(t.Context(), kv.Latest); err != nil {
		t.Fatal(err)
	}
	return r.held.Load()
}

// An unused resource costs nothing, with any number of writes to it, and neither does a call of
// Resource.
func TestUnused(t *testing.T) {
	c, write := running(t, Options{})
	for i := range 10 {
		write(fmt.Sprintf("/registry/unused/%d", i), 100)
		c.Resource("/registry/unused/")
	}
	if len(c.states) != 0 {
		t.Errorf("the cache holds %d resources", len(c.states))
	}
	use(t, c, "/registry/used/")
	c.Forget("/registry/used/")
	if len(c.states) != 0 || c.recorded.Load() != 0 {
		t.Errorf("the cache holds %d resources, %d bytes of history", len(c.states), c.recorded.Load())
	}
}

func TestHistoryBounds(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		size    int
		want    int // events of 100
	}{
		{"events", Options{HistoryEvents: 30}, 10, 30},
		{"bytes", Options{HistoryBytes: 20 * 1400}, 1000, 20},
		{"few large ones", Options{HistoryBytes: 100}, 1000, minHistory},
		{"all of it", Options{}, 1000, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, write := running(t, test.options)
			write("/registry/a/a", test.size)
			s := use(t, c, "/registry/a/")
			for range 100 {
				write("/registry/a/a", test.size)
			}
			h := &s.history
			if len(h.events) != test.want || h.bytes != c.recorded.Load() || h.bytes != int64(test.want*(test.size+400)) {
				t.Errorf("%d events of %d bytes are kept, %d in all", len(h.events), h.bytes, c.recorded.Load())
			}
			if first := h.events[0]; first.Prev.Revision != h.floor && h.floor != 2 {
				t.Errorf("the first event follows %d, the floor is %d", first.Prev.Revision, h.floor)
			}
		})
	}
}

// Many resources with a little history each stay within the bound of all.
func TestTotalHistoryBound(t *testing.T) {
	const bound = 100_000
	c, write := running(t, Options{TotalHistoryBytes: bound})
	for i := range 50 {
		prefix := fmt.Sprintf("/registry/%d/", i)
		s := use(t, c, prefix)
		for range 20 {
			write(prefix+"a", 1000)
		}
		// The work of the feed after its last signal.
		write(prefix+"a", 0)
		if s.prefix != prefix || c.recorded.Load() > bound+2000 {
			t.Fatalf("%d bytes of history are kept", c.recorded.Load())
		}
	}
}

// Results derived from an event are dropped before the event.
func TestHotHistory(t *testing.T) {
	c, write := running(t, Options{})
	s := use(t, c, "/registry/a/")
	for range 2 * hotHistory {
		write("/registry/a/a", 0)
		s.history.events[len(s.history.events)-1].Memo("frame", Validity{}, func() ([]byte, error) { return nil, nil })
	}
	n := 0
	for _, e := range s.history.events {
		if e.memos.first.Load() != nil {
			n++
		}
	}
	if n != hotHistory {
		t.Errorf("%d events keep what was computed", n)
	}
}

func TestKeptSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, write := running(t, Options{})
		s := use(t, c, "/registry/a/")
		for range 20 {
			write("/registry/a/a", 0)
		}
		r := c.Resource("/registry/a/")
		ask := func(revision int64) *Snapshot {
			snapshot, err := r.Snapshot(t.Context(), revision)
			if err != nil {
				t.Fatal(err)
			}
			return snapshot
		}
		first := ask(2)
		for revision := int64(3); revision < 18; revision++ {
			ask(revision)
			if ask(2) != first {
				t.Fatal("a snapshot in use was not kept")
			}
		}
		if n := len(s.kept.list); n != maxKept {
			t.Errorf("%d snapshots are kept", n)
		}
		time.Sleep(keepFor + 1)
		write("/registry/a/a", 0)
		if n := len(s.kept.list); n != 0 {
			t.Errorf("%d unused snapshots are kept", n)
		}
	})
}

// A watcher that is far behind gets its events in portions. So it holds little memory while it is
// stuck with one, and misses nothing.
func TestPortions(t *testing.T) {
	for _, test := range []struct{ size, writes, most int }{{10, 300, 256}, {10_000, 20, 8}, {100_000, 20, 2}, {1 << 20, 3, 1}} {
		c, write := running(t, Options{HistoryBytes: 1 << 30, TotalHistoryBytes: 1 << 30})
		use(t, c, "/registry/a/")
		w, err := c.Resource("/registry/a/").Watch(t.Context(), "", kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		for range test.writes {
			write("/registry/a/a", test.size)
		}
		most := 0
		for seen := w.seen; seen < c.Revision(); {
			batch, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch.Events {
				if seen++; e.Revision != seen {
					t.Fatalf("revision %d comes where %d is due", e.Revision, seen)
				}
			}
			most = max(most, len(batch.Events))
		}
		if most != test.most {
			t.Errorf("%d events of %d bytes come at once, want %d", most, test.size, test.most)
		}
	}
}

// A result derived from a portion is computed once for all watchers of that portion: those that miss
// the same events of the same keys, from any start. No watcher gets other keys, or an event twice.
func TestSharedPortions(t *testing.T) {
	c, write := running(t, Options{})
	use(t, c, "/registry/a/")
	watch := func(prefix string) *Watcher {
		w, err := c.Resource("/registry/a/").Watch(t.Context(), prefix, kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	computed := 0
	told := func(w *Watcher) string {
		batch, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := batch.Memo("text", Validity{}, func() ([]byte, error) {
			computed++
			var all []byte
			for _, e := range batch.Events {
				all = fmt.Appendf(all, "%d %s ", e.Revision, e.Key()[len("/registry/a/"):])
			}
			return all, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	expect := func(got, want string, computations int) {
		t.Helper()
		if got != want || computed != computations {
			t.Errorf("told %q in %d computations, want %q in %d", got, computed, want, computations)
		}
		computed = 0
	}
	first, second, x := watch(""), watch(""), watch("/registry/a/x/")
	write("/registry/b/b", 0) // no watcher here gets it
	late := watch("")
	write("/registry/a/x/1", 0)
	write("/registry/a/y/2", 0)
	expect(told(first), "3 x/1 4 y/2 ", 1)
	expect(told(second)+told(late), "3 x/1 4 y/2 3 x/1 4 y/2 ", 0)
	expect(told(x), "3 x/1 ", 1)
	write("/registry/a/x/3", 0)
	expect(told(first), "5 x/3 ", 1)
	behind := watch("")
	behind.seen = 3
	expect(told(behind), "4 y/2 5 x/3 ", 1)
	expect(told(second), "5 x/3 ", 1) // for behind's was kept last
	expect(told(late)+told(x), "5 x/3 5 x/3 ", 1)
}

// Closed watchers leave no data behind.
func TestWatchersLeaveNothing(t *testing.T) {
	c, _ := running(t, Options{})
	s := use(t, c, "/registry/a/")
	r := c.Resource("/registry/a/")
	for i := range 100 {
		w, err := r.Watch(t.Context(), fmt.Sprintf("/registry/a/%d", i), kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if b, err := w.Next(ctx); err == nil {
			t.Errorf("got %v", b)
		}
		w.Close()
	}
	if len(s.groups) != 0 {
		t.Errorf("%d groups are left", len(s.groups))
	}
}
