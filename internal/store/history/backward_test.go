package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// newest returns the changes of the log between two revisions, and at most n of them.
func newest(t testing.TB, s *Store, after, until int64, n int) (all []kv.Logged) {
	t.Helper()
	for l, err := range s.Log(t.Context(), after, until) {
		if err != nil {
			t.Fatalf("the log after %d until %d: %v", after, until, err)
		}
		if all = append(all, l); len(all) == n {
			break
		}
	}
	return all
}

// askLog reads the log between random moments, and each change of it.
func (m *model) askLog(t *testing.T, s *Store, random *rand.Rand, oldest int64) {
	t.Helper()
	after := oldest + random.Int64N(m.newest-oldest+1)
	until := after + random.Int64N(m.newest-after+1)
	floor, end := after, until
	switch random.IntN(4) {
	case 0:
		after, floor = 0, oldest
	case 1:
		until, end = 0, m.newest
	}
	var got, want []string
	for _, l := range newest(t, s, after, until, 0) {
		p, err := s.Change(t.Context(), l.Key, l.Revision)
		if err != nil {
			t.Fatalf("%s at %d: %v", l.Key, l.Revision, err)
		}
		got = append(got, shown(&p))
	}
	for i := range m.times {
		if p := &m.times[i]; p.Revision > floor && p.Revision <= end {
			want = append(want, shown(p))
		}
	}
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		t.Fatalf("the log after %d until %d has\n%s\nwant\n%s", after, until, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if last := m.times[len(m.times)-1]; last.Revision > oldest {
		if _, err := s.Change(t.Context(), last.Key+"-other", last.Revision); !errors.Is(err, kv.ErrNotFound) {
			t.Fatalf("the change of another key: %v", err)
		}
	}
	if oldest == 1 {
		return
	}
	var compacted *kv.CompactedError
	for _, bounds := range [][2]int64{{oldest - 1, 0}, {0, oldest - 1}} {
		for _, err := range s.Log(t.Context(), bounds[0], bounds[1]) {
			if !errors.As(err, &compacted) || compacted.Oldest != oldest {
				t.Fatalf("the log between %d, the oldest being %d: %v", bounds, oldest, err)
			}
		}
	}
	if _, err := s.Change(t.Context(), m.times[oldest-2].Key, oldest); !errors.As(err, &compacted) {
		t.Fatalf("the change to the oldest state: %v", err)
	}
}

// The log is complete while changes move from the backend to the file, and skips the rest when its caller stops.
func TestLogWhileArchiving(t *testing.T) {
	s := newStore(t, memkv.New(memkv.Options{}), t.TempDir(), Options{batch: 2})
	ended := make(chan error, 1)
	go func() {
		var last int64
		for i := range 5_000 {
			var err error
			if last, err = s.Commit(context.Background(), kv.Write{Key: "/keys/one", Value: fmt.Append(nil, i), Expect: last}); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for seen := int64(1); ; {
		before := seen
		all := newest(t, s, before, 0, 0)
		if len(all) > 0 {
			seen = all[0].Revision
		}
		if int64(len(all)) != seen-before {
			t.Fatalf("%d changes after %d until %d", len(all), before, seen)
		}
		for i, l := range all {
			if l.Revision != seen-int64(i) {
				t.Fatalf("change %d before %d is %d", i, seen, l.Revision)
			}
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// A forgotten key is not in the log if it was deleted. Of an existing key, only its last change has values.
func TestLogOfForgotten(t *testing.T) {
	s := newStore(t, memkv.New(memkv.Options{}), t.TempDir(), Options{})
	first := commit(t, s, "/keys/one", "a", 0)
	second := commit(t, s, "/keys/one", "b", first)
	gone := commit(t, s, "/keys/two", "a", 0)
	if _, err := s.Commit(t.Context(), kv.Write{Key: "/keys/two", Expect: gone}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"/keys/one", "/keys/two"} {
		if err := s.Forget(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(newest(t, s, 0, 0, 0)), fmt.Sprintf("[{/keys/one %d} {/keys/one %d}]", second, first); got != want {
		t.Errorf("the log has %s, want %s", got, want)
	}
	if _, err := s.Change(t.Context(), "/keys/one", first); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a forgotten change: %v", err)
	}
	if p, err := s.Change(t.Context(), "/keys/one", second); err != nil || string(p.Value) != "b" || p.Prev != nil {
		t.Errorf("the last change: %+v, %v", p, err)
	}
}

// counting counts the runs that are decoded.
type counting struct{ decoded *atomic.Int64 }

func (c counting) Encode(_ context.Context, _ string, value []byte) ([]byte, error) {
	return value, nil
}

func (c counting) Decode(_ context.Context, _ string, stored []byte) []byte {
	c.decoded.Add(1)
	return stored
}

// long returns a store whose file has many changes of 2000 objects.
func long(t testing.TB, changes int, o Options) *Store {
	t.Helper()
	s := newStore(t, memkv.New(memkv.Options{}), t.TempDir(), o)
	random := rand.New(rand.NewPCG(5, 6))
	revisions := make([]int64, 2000)
	const together = 100
	for n := 0; n < changes; n += together {
		w := kv.Write{Note: []byte("alice\x00update\x00kubectl-edit\x00\x00")}
		first := random.IntN(len(revisions) / together)
		for i := range together {
			at := first + i*len(revisions)/together
			key := fmt.Sprintf("/registry/apps/deployments/default/web-%d", at)
			change := kv.Change{Key: key, Value: object(key, n+i+1), Expect: revisions[at]}
			if i == 0 {
				w.Key, w.Value, w.Expect = change.Key, change.Value, change.Expect
			} else {
				w.With = append(w.With, change)
			}
		}
		revision, err := s.Commit(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		for i := range together {
			revisions[first+i*len(revisions)/together] = revision + int64(i)
		}
	}
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	return s
}

// The newest 100 of many changes cost as much as 100 changes: others are not decoded.
func TestNewestOfMany(t *testing.T) {
	decoded := &atomic.Int64{}
	const changes = 10_000
	s := long(t, changes, Options{Seal: counting{decoded}})
	s.file.cache = cache{}
	decoded.Store(0)
	all := newest(t, s, 0, 0, 100)
	if n := decoded.Load(); n != 0 || len(all) != 100 {
		t.Fatalf("%d runs are decoded for the log of %d changes", n, len(all))
	}
	for _, l := range all {
		if _, err := s.Change(t.Context(), l.Key, l.Revision); err != nil {
			t.Fatal(err)
		}
	}
	if n := decoded.Load(); n > 2*100 { // the run of a change, and that of the state before it
		t.Errorf("%d runs are decoded for 100 changes of %d", n, changes)
	}
}

// newest: the last 100 changes, with their values. none: a user without rights, for whom all names are read.
//
// go test ./internal/store/history -run xxx -bench Log
func BenchmarkLog(b *testing.B) {
	for _, changes := range []int{10_000, 100_000} {
		s := long(b, changes, Options{})
		b.Run(fmt.Sprint("newest/", changes), func(b *testing.B) {
			for b.Loop() {
				s.file.cache = cache{}
				for _, l := range newest(b, s, 0, 0, 100) {
					if _, err := s.Change(b.Context(), l.Key, l.Revision); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(fmt.Sprint("none/", changes), func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, err := range s.Log(b.Context(), 0, 0) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != changes {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(changes)/float64(time.Nanosecond), "ns/change")
		})
	}
}
