package kvtest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// benchValue is the size of a middling object.
const benchValue = 1700

// Bench measures a backend. Open returns an empty store for each call.
func Bench(b *testing.B, open func(testing.TB) kv.Backend) {
	value := bytes.Repeat([]byte("benchmark "), benchValue/10)
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("Create/writers=%d", writers), func(b *testing.B) {
			benchWriters(b, opened(b, open), writers, func(s kv.Backend, writer, i int, _ int64) (int64, error) {
				return s.Commit(b.Context(), kv.Write{Key: fmt.Sprintf("/registry/w/%d/%d", writer, i), Value: value})
			})
		})
		b.Run(fmt.Sprintf("Update/writers=%d", writers), func(b *testing.B) {
			benchWriters(b, opened(b, open), writers, func(s kv.Backend, writer, _ int, last int64) (int64, error) {
				return s.Commit(b.Context(), kv.Write{Key: fmt.Sprintf("/registry/w/%d", writer), Value: value, Expect: last})
			})
		})
	}
	b.Run("Get", func(b *testing.B) {
		s := filled(b, open, value, 5000)
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := s.Get(b.Context(), benchKey(i%5000), kv.Latest); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("List5000", func(b *testing.B) {
		s := filled(b, open, value, 5000)
		b.SetBytes(5000 * benchValue)
		for b.Loop() {
			page, err := s.List(b.Context(), kv.Range{Prefix: "/registry/"})
			if err != nil || len(page.Records) != 5000 {
				b.Fatal(len(page.Records), err)
			}
		}
	})
	b.Run("Replay5000", func(b *testing.B) {
		s := filled(b, open, value, 5000)
		b.SetBytes(5000 * benchValue)
		for b.Loop() {
			seen := 0
			for batch, err := range s.Watch(b.Context(), "/registry/", 1) {
				if err != nil {
					b.Fatal(err)
				}
				if seen += len(batch.Events); seen >= 5000 {
					break
				}
			}
		}
	})
	b.Run("Watchers200", func(b *testing.B) { benchWatchers(b, opened(b, open), value, 200) })
}

func opened(b *testing.B, open func(testing.TB) kv.Backend) kv.Backend {
	s := open(b)
	b.Cleanup(func() { _ = s.Close() })
	b.ReportAllocs()
	return s
}

func benchKey(i int) string { return fmt.Sprintf("/registry/things/namespace/object-%06d", i) }

// filled returns a store with n records.
func filled(b *testing.B, open func(testing.TB) kv.Backend, value []byte, n int) kv.Backend {
	s := opened(b, open)
	Fill(b, s, value, 0, n)
	b.ResetTimer()
	return s
}

// Fill creates records from first to last, many at a time.
func Fill(t testing.TB, s kv.Backend, value []byte, first, last int) {
	var next atomic.Int64
	next.Store(int64(first))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < last; i = int(next.Add(1)) - 1 {
				if _, err := s.Commit(t.Context(), kv.Write{Key: benchKey(i), Value: value}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func benchWriters(b *testing.B, s kv.Backend, writers int, write func(s kv.Backend, writer, i int, last int64) (int64, error)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			var last int64
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				revision, err := write(s, writer, int(i), last)
				if err != nil {
					b.Error(err)
					return
				}
				last = revision
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// benchWatchers measures how many events reach many watches of everything while
// several writers write.
func benchWatchers(b *testing.B, s kv.Backend, value []byte, watchers int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	last := 1 + int64(b.N)
	var watching sync.WaitGroup
	for range watchers {
		watching.Go(func() {
			for batch, err := range s.Watch(ctx, "/registry/", 1) {
				if err != nil {
					b.Error(err)
					return
				}
				if batch.Revision >= last {
					return
				}
			}
		})
	}
	Fill(b, s, value, 0, b.N)
	watching.Wait()
	b.ReportMetric(float64(b.N)*float64(watchers)/b.Elapsed().Seconds(), "events/s")
}
