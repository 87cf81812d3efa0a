package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// filler brings the objects of the benchmarks to about 1.7 kB.
var filler = strings.Repeat("x", 1600)

// filled returns a cache with n objects of crontabs, loaded.
func filled(b *testing.B, n int) *fixture {
	f := start(b, watchcache.Options{}, nil)
	for i := range n {
		key := fmt.Sprintf("%sdefault/object-%05d", crontabs, i)
		write(b, f.store, key, document(key, filler))
	}
	f.snapshot(crontabs, kv.Latest)
	return f
}

// BenchmarkApply is one event through the feed: from the backend's watch into the
// tree and the history.
func BenchmarkApply(b *testing.B) {
	f := filled(b, 5000)
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%sdefault/object-%05d", crontabs, i)
	}
	value := document(keys[0], filler)
	last := int64(5001)
	at := make([]int64, len(keys))
	for i := range at {
		at[i] = int64(i) + 2
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k := i % len(keys)
		revision, err := f.store.Commit(context.Background(), kv.Write{Key: keys[k], Value: value, Expect: at[k]})
		if err != nil {
			b.Fatal(err)
		}
		at[k], last = revision, revision
		if i%256 == 255 {
			f.synced(last)
		}
	}
	f.synced(last)
}

func BenchmarkGet(b *testing.B) {
	f := filled(b, 5000)
	r := f.cache.Resource(crontabs)
	b.ReportAllocs()
	for b.Loop() {
		if o, err := r.Get(context.Background(), crontabs+"default/object-02500"); o == nil || err != nil {
			b.Fatal(o, err)
		}
	}
}

// BenchmarkList takes a snapshot and reads 5,000 objects.
func BenchmarkList(b *testing.B) {
	f := filled(b, 5000)
	r := f.cache.Resource(crontabs)
	b.ReportAllocs()
	for b.Loop() {
		s, err := r.Snapshot(context.Background(), kv.Latest)
		if err != nil {
			b.Fatal(err)
		}
		bytes := 0
		for o := range s.Scan("", "") {
			e, err := o.Read()
			if err != nil {
				b.Fatal(err)
			}
			bytes += len(e.JSON)
		}
		b.SetBytes(int64(bytes))
	}
}

// BenchmarkLen counts the rest after the first page of 5,000.
func BenchmarkLen(b *testing.B) {
	s := filled(b, 5000).snapshot(crontabs, kv.Latest)
	b.ReportAllocs()
	for b.Loop() {
		if n := s.Len(crontabs+"default/", crontabs+"default/object-00499"); n != 4500 {
			b.Fatal(n)
		}
	}
}

// BenchmarkSnapshotOfThePast undoes the last 1,000 events, or reads the backend.
func BenchmarkSnapshotOfThePast(b *testing.B) {
	for _, test := range []struct {
		name    string
		history int
	}{{"history", 0}, {"backend", 10}} {
		b.Run(test.name, func(b *testing.B) {
			f := start(b, watchcache.Options{HistoryEvents: test.history}, nil)
			for i := range 6000 {
				key := fmt.Sprintf("%sdefault/object-%05d", crontabs, i%5000)
				write(b, f.store, key, document(key, filler))
				if i == 0 {
					f.snapshot(crontabs, kv.Latest)
				}
			}
			f.synced(6001)
			r := f.cache.Resource(crontabs)
			for i := 0; b.Loop(); i++ {
				// Never a kept snapshot.
				if _, err := r.Snapshot(context.Background(), int64(5000+i%20)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFanOut measures one event for 200 watchers; an operation is one write.
func BenchmarkFanOut(b *testing.B) {
	const watchers = 200
	f := filled(b, 100)
	var told sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for range watchers {
		w := f.watch(crontabs, kv.Latest)
		told.Go(func() {
			n := 0
			for {
				batch, err := w.Next(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				for _, e := range batch.Events {
					n++
					if e.Object == nil {
						return
					}
				}
			}
		})
	}
	key := crontabs + "default/object-00000"
	value := document(key, filler)
	record, _ := f.store.Get(ctx, key, kv.Latest)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		revision, err := f.store.Commit(ctx, kv.Write{Key: key, Value: value, Expect: record.Revision})
		if err != nil {
			b.Fatal(err)
		}
		record.Revision = revision
		if i%64 == 63 {
			f.synced(revision)
		}
	}
	write(b, f.store, key, nil)
	told.Wait()
	b.ReportMetric(float64(b.N*watchers)/b.Elapsed().Seconds(), "events/s")
	b.StopTimer()
	cancel()
}

// BenchmarkWriteWithWatchers measures a write until the cache has applied it, with 10,000 watchers of
// other keys, or of that one.
func BenchmarkWriteWithWatchers(b *testing.B) {
	const watchers = 10_000
	for _, test := range []struct {
		name string
		of   func(i int) (resource, prefix string)
	}{
		{"none", nil},
		{"of 1000 other resources", func(i int) (string, string) {
			r := fmt.Sprintf("/registry/example.com/kind%d/", i%1000)
			return r, r
		}},
		{"of other namespaces", func(i int) (string, string) { return crontabs, fmt.Sprintf("%sns%d/", crontabs, i) }},
		{"of the object", func(i int) (string, string) { return crontabs, crontabs }},
	} {
		b.Run(test.name, func(b *testing.B) {
			f := filled(b, 100)
			ctx, cancel := context.WithCancel(context.Background())
			var waiting sync.WaitGroup
			for i := range watchers {
				if test.of == nil {
					break
				}
				resource, prefix := test.of(i)
				w, err := f.cache.Resource(resource).Watch(ctx, prefix, kv.Latest)
				if err != nil {
					b.Fatal(err)
				}
				waiting.Go(func() {
					for {
						if _, err := w.Next(ctx); errors.Is(err, context.Canceled) {
							return
						}
					}
				})
			}
			runtime.Gosched()
			key := crontabs + "default/object-00000"
			value := document(key, filler)
			record, _ := f.store.Get(ctx, key, kv.Latest)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				revision, err := f.store.Commit(ctx, kv.Write{Key: key, Value: value, Expect: record.Revision})
				if err != nil {
					b.Fatal(err)
				}
				record.Revision = revision
				f.synced(revision)
			}
			b.StopTimer()
			cancel()
			waiting.Wait()
		})
	}
}

// BenchmarkWait is 32 waiters, each for a write of its own.
func BenchmarkWait(b *testing.B) {
	f := filled(b, 100)
	var mu sync.Mutex
	n := 0
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		mu.Lock()
		key := fmt.Sprintf("%sdefault/mine-%d", crontabs, n)
		n++
		mu.Unlock()
		value := document(key, filler)
		at := kv.Absent
		for p.Next() {
			revision, err := f.store.Commit(context.Background(), kv.Write{Key: key, Value: value, Expect: at})
			if err != nil {
				b.Error(err)
				return
			}
			at = revision
			if err := f.cache.Wait(context.Background(), revision); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkMemory measures the memory that the cache adds to a stored object, and that of an idle
// watcher.
func BenchmarkMemory(b *testing.B) {
	const objects, watchers = 50_000, 10_000
	store := memkv.New(memkv.Options{})
	for i := range objects {
		key := fmt.Sprintf("%sdefault/object-%05d", crontabs, rand.IntN(1<<40)+i)
		write(b, store, key, document(key, filler))
	}
	for b.Loop() {
		f := run(b, store, watchcache.Options{}, nil)
		f.synced(1)
		before := heap()
		f.snapshot(crontabs, kv.Latest)
		after := heap()
		b.ReportMetric(float64(after-before)/objects, "B/object")
		keep := make([]*watchcache.Watcher, watchers)
		for i := range keep {
			keep[i] = f.watch(crontabs, kv.Latest)
		}
		b.ReportMetric(float64(heap()-after)/watchers, "B/watcher")
		runtime.KeepAlive(keep)
		f.stop()
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
