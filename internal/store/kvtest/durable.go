package kvtest

import (
	"fmt"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// RunDurable checks that a backend with its data in a directory keeps all of it when it is closed and
// opened again. open opens the store in dir, or creates one.
func RunDurable(t *testing.T, open func(t testing.TB, dir string) kv.Backend, given ...Option) {
	o := collectOptions(given)
	for _, test := range durableTests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			s := newStore(t, open(t, dir), o)
			test.run(s, func() {
				t.Helper()
				if err := s.Backend.Close(); err != nil {
					t.Fatalf("closing: %v", err)
				}
				s.Backend = open(t, dir)
				t.Cleanup(func() { _ = s.Backend.Close() })
			})
		})
	}
	t.Run("Model", func(t *testing.T) {
		var dir string
		openIn := func(t testing.TB) kv.Backend {
			dir = t.TempDir()
			return open(t, dir)
		}
		runModel(t, o, openIn, func(b kv.Backend) kv.Backend {
			if err := b.Close(); err != nil {
				t.Fatalf("closing: %v", err)
			}
			return open(t, dir)
		})
	})
}

type durableTest struct {
	name string
	run  func(s *store, reopen func())
}

var durableTests = []durableTest{
	{"an empty store stays empty", func(s *store, reopen func()) {
		reopen()
		if got := s.revision(); got != 1 && !s.except[UsedStore] {
			s.Errorf("revision %d, want 1", got)
		}
		s.expectList(kv.Range{}, "")
	}},
	{"states and history are kept", func(s *store, reopen func()) {
		r0 := s.revision()
		r1 := s.create("/a", "1")
		r2 := s.put("/a", "", r1)
		r3 := s.remove("/a", r2)
		r4 := s.create("/b", "2")
		for range 2 {
			reopen()
			if got := s.revision(); got != r4 && !s.except[UsedStore] {
				s.Errorf("revision %d, want %d", got, r4)
			}
			s.expect("/a", r1, show([]byte("1"), r1))
			s.expect("/a", r2, show(nil, r2))
			s.expect("/a", r3, "")
			s.expectList(kv.Range{}, fmt.Sprintf("/b=2@%d", r4))
			s.expectEvents("/", r0, r4,
				fmt.Sprintf("/a=1@%d (was -@0)", r1),
				fmt.Sprintf("/a=@%d (was 1@%d)", r2, r1),
				fmt.Sprintf("/a=-@%d (was @%d)", r3, r2),
				fmt.Sprintf("/b=2@%d (was -@0)", r4))
		}
	}},
	{"a watch crosses from what was to what is", func(s *store, reopen func()) {
		r0 := s.revision()
		last := s.create("/a", "0")
		for i := 1; i < 400; i++ {
			if i%100 == 0 {
				reopen()
			}
			last = s.put("/a", fmt.Sprint(i), last)
		}
		for i, e := range s.events("/a", r0, last) {
			if string(e.Value) != fmt.Sprint(i) || (i > 0 && string(e.Prev) != fmt.Sprint(i-1)) {
				s.Errorf("event %d is %s", i, showEvent(e))
			}
		}
	}},
	{"what was compacted stays so", func(s *store, reopen func()) {
		r1 := s.create("/a", "1")
		r2 := s.put("/a", "2", r1)
		r3 := s.put("/a", "3", r2)
		s.compact(r2)
		for range 2 {
			reopen()
			_, err := s.Get(s.ctx, "/a", r1)
			s.expectCompacted("get", err, r1, r2)
			s.expectCompacted("watch", s.watchError(s.ctx, "/", r1), r1, r2)
			s.expect("/a", r2, show([]byte("2"), r2))
			s.expectEvents("/", r2, r3, fmt.Sprintf("/a=3@%d (was 2@%d)", r3, r2))
		}
	}},
	{"no revision is used twice", func(s *store, reopen func()) {
		last := s.revision()
		for range 5 {
			r := s.create("/a", "1")
			d := s.remove("/a", r)
			if r <= last || d <= r {
				s.Errorf("after %d came %d and %d", last, r, d)
			}
			// The newest write is forgotten, its revision is not.
			s.compact(d)
			reopen()
			if got := s.revision(); got != d && !s.except[UsedStore] {
				s.Errorf("revision %d, want %d", got, d)
			}
			last = d
		}
	}},
	{"many compactions leave what is current", func(s *store, reopen func()) {
		held := map[string]int64{}
		for round := range 10 {
			for i := range 100 {
				key := fmt.Sprintf("/k/%d", i%30)
				held[key] = s.put(key, fmt.Sprint(round, i), held[key])
			}
			before := s.list(kv.Range{})
			s.compact(s.revision() - 50)
			reopen()
			s.expectList(kv.Range{}, before)
		}
	}},
}
