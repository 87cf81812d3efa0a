//go:build !race

// The race detector allocates too, and empties pools.

package rest_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// A listener is the client of a watch. It counts events.
type listener struct {
	header http.Header
	told   *atomic.Int64
}

func (l listener) Header() http.Header { return l.header }
func (l listener) WriteHeader(int)     {}
func (l listener) Flush()              {}
func (l listener) Write(p []byte) (int, error) {
	l.told.Add(int64(bytes.Count(p, []byte{'\n'})))
	return len(p), nil
}

// An audience is a number of watches of all leads.
type audience struct {
	*server
	size int
	told atomic.Int64
	rev  int64
	tell func() // writes one object, and returns when all watches got it
}

func (s *server) audience(size int) *audience {
	a := &audience{server: s, size: size}
	first := s.make("a")
	a.rev, _ = strconv.ParseInt(first, 10, 64)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	for range size {
		r := httptest.NewRequestWithContext(ctx, "GET", leads+"?watch=1&allowWatchBookmarks=true&resourceVersion="+first, nil)
		watching.Go(func() { s.handler.ServeHTTP(listener{http.Header{}, &a.told}, r) })
	}
	s.t.Cleanup(func() { cancel(); watching.Wait() })
	key := "/registry/test.example.com/leads/default/a"
	stored, err := s.backend.Get(ctx, key, kv.Latest)
	if err != nil {
		s.t.Fatal(err)
	}
	value := bytes.Replace(stored.Value, []byte(`"metadata":{`), append(append([]byte(`"filler":"`), bytes.Repeat([]byte{'x'}, 1500)...), []byte(`","metadata":{`)...), 1)
	a.tell = func() {
		want := a.told.Load() + int64(size)
		if a.rev, err = s.backend.Commit(ctx, kv.Write{Key: key, Value: value, Expect: a.rev}); err != nil {
			s.t.Fatal(err)
		}
		for a.told.Load() < want {
			runtime.Gosched()
		}
	}
	return a
}

// A watch allocates nothing for an event that other watches have encoded already, even if the
// event is sent alone.
func TestWatchAllocations(t *testing.T) {
	const watches = 100
	a := newServer(t).audience(watches)
	a.tell()
	got := testing.AllocsPerRun(100, a.tell) / watches
	if got > 2.5 {
		t.Errorf("%.1f allocations for each event and watch, more than 2.5", got)
	}
	t.Logf("%.1f allocations for each event and watch", got)
}

// BenchmarkWatch measures an event for 200 watches that discard it.
func BenchmarkWatch(b *testing.B) {
	const watches = 200
	a := newServer(b).audience(watches)
	b.ReportAllocs()
	for b.Loop() {
		a.tell()
	}
	b.ReportMetric(float64(b.N*watches)/b.Elapsed().Seconds(), "events/s")
}
