package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

const crontabs = "/registry/stable.example.com/crontabs/"

// fixture is a store and a running cache of it.
type fixture struct {
	testing.TB
	store *memkv.Store
	cache *watchcache.Cache
	stop  func() error // ends Run and returns its result
}

// start runs a cache of a store until the end of the test. The cache sees the
// store through wrap, if that is not nil.
func start(t testing.TB, o watchcache.Options, wrap func(kv.Backend) kv.Backend) *fixture {
	t.Helper()
	store := memkv.New(memkv.Options{})
	f := run(t, store, o, wrap)
	t.Cleanup(func() { store.Close() })
	return f
}

func run(t testing.TB, store *memkv.Store, o watchcache.Options, wrap func(kv.Backend) kv.Backend) *fixture {
	f := runOver(t, store, o, wrap)
	f.store = store
	return f
}

// runOver is run over any store.
func runOver(t testing.TB, backend kv.Backend, o watchcache.Options, wrap func(kv.Backend) kv.Backend) *fixture {
	if wrap != nil {
		backend = wrap(backend)
	}
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	f := &fixture{TB: t, cache: watchcache.New(backend, o)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.cache.Run(ctx) }()
	f.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { f.stop() })
	return f
}

// put writes an object under key, and del removes it. Both return when the cache
// has seen it.
func (f *fixture) put(key, value string) int64 {
	f.Helper()
	revision := write(f, f.store, key, document(key, value))
	f.synced(revision)
	return revision
}

func (f *fixture) del(key string) int64 {
	f.Helper()
	revision := write(f, f.store, key, nil)
	f.synced(revision)
	return revision
}

func (f *fixture) synced(revision int64) {
	f.Helper()
	if err := f.cache.Wait(f.Context(), revision); err != nil {
		f.Fatal(err)
	}
}

// write sets key to value, unconditionally.
func write(t testing.TB, b kv.Backend, key string, value []byte) int64 {
	t.Helper()
	old, err := b.Get(t.Context(), key, kv.Latest)
	if err != nil && err != kv.ErrNotFound {
		t.Fatal(err)
	}
	revision, err := b.Commit(t.Context(), kv.Write{Key: key, Value: value, Expect: old.Revision})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// document returns a stored object with a text.
func document(key, value string) []byte {
	name := key[strings.LastIndexByte(key, '/')+1:]
	return fmt.Appendf(nil, `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":%q},"spec":%q}`, name, value)
}

// said returns the text of a document.
func said(o *watchcache.Object) string {
	if o == nil {
		return "nothing"
	}
	if o.Err() != nil {
		return "unreadable"
	}
	_, spec, _ := strings.Cut(raw(o), `"spec":"`)
	return strings.TrimSuffix(spec, `"}`)
}

func (f *fixture) snapshot(prefix string, revision int64) *watchcache.Snapshot {
	f.Helper()
	s, err := f.cache.Resource(prefix).Snapshot(f.Context(), revision)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fixture) watch(prefix string, after int64) *watchcache.Watcher {
	f.Helper()
	w, err := f.cache.Resource(prefix).Watch(f.Context(), "", after)
	if err != nil {
		f.Fatal(err)
	}
	return w
}

// describe renders a snapshot as key=value pairs, without the prefix.
func describe(s *watchcache.Snapshot, prefix string) string {
	var out []string
	for o := range s.Scan("", "") {
		out = append(out, strings.TrimPrefix(o.Key, prefix)+"="+said(o))
	}
	return fmt.Sprintf("%d: %s", s.Revision(), strings.Join(out, " "))
}

func describeEvent(e *watchcache.Event, prefix string) string {
	return fmt.Sprintf("%d %s: %s -> %s", e.Revision, strings.TrimPrefix(e.Key(), prefix), said(e.Prev), said(e.Object))
}

// hooked is a backend some of whose methods are interfered with.
type hooked struct {
	kv.Backend
	list     func(kv.Range) error // before List
	listed   func(kv.Range)       // after it
	feed     func(kv.Batch) error // before each batch of the feed
	revision func(int64) int64
	loader   kv.Loader
	cut      atomic.Bool // a compaction has overtaken the feed
	lists    atomic.Int64
	watches  atomic.Int64 // that are not the feed
}

// Loader implements a method of kv.LoaderOf.
func (h *hooked) Loader() kv.Loader { return h.loader }

// again loads from a store in memory, as a kv.Loader of a file does.
type again struct{ *memkv.Store }

func (a again) Load(ctx context.Context, key string, revision int64) ([]byte, error) {
	r, err := a.Get(ctx, key, kv.Latest)
	if err == kv.ErrNotFound || err == nil && r.Revision != revision {
		r, err = a.Get(ctx, key, revision)
	}
	if err == kv.ErrNotFound || err == nil && r.Revision != revision {
		err = &kv.CompactedError{Asked: revision}
	}
	return r.Value, err
}

func (h *hooked) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	h.lists.Add(1)
	if h.list != nil {
		if err := h.list(r); err != nil {
			return kv.Page{}, err
		}
	}
	page, err := h.Backend.List(ctx, r)
	if h.listed != nil {
		h.listed(r)
	}
	return page, err
}

func (h *hooked) Revision(ctx context.Context) (int64, error) {
	revision, err := h.Backend.Revision(ctx)
	if h.revision != nil {
		revision = h.revision(revision)
	}
	return revision, err
}

func (h *hooked) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	if prefix != "" {
		h.watches.Add(1)
		return h.Backend.Watch(ctx, prefix, after)
	}
	return func(yield func(kv.Batch, error) bool) {
		for b, err := range h.Backend.Watch(ctx, prefix, after) {
			if err == nil && h.feed != nil {
				err = h.feed(b)
			}
			if err != nil {
				var compacted *kv.CompactedError
				if errors.As(err, &compacted) {
					h.cut.Store(true)
				}
				yield(kv.Batch{}, err)
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// raw returns the value of an object, or the error of reading it.
func raw(o *watchcache.Object) string {
	data, err := o.Raw()
	if err != nil {
		return err.Error()
	}
	return string(data)
}
