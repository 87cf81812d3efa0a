package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

var writeTests = []test{
	{"a write needs its key where it expects it", func(s *store) {
		r1 := s.create("/a", "1")
		r2 := s.put("/a", "2", r1)
		s.expectConflict(kv.Write{Key: "/a", Value: []byte("x"), Expect: r1}, "/a", r1, r2)
		s.expectConflict(kv.Write{Key: "/a", Value: []byte("x"), Expect: kv.Absent}, "/a", kv.Absent, r2)
		s.expectConflict(kv.Write{Key: "/a", Value: []byte("x"), Expect: r2 + 1}, "/a", r2+1, r2)
		s.expectConflict(kv.Write{Key: "/b", Value: []byte("x"), Expect: r2}, "/b", r2, kv.Absent)
		s.expectConflict(kv.Write{Key: "/b", Value: []byte("x"), Expect: -1}, "/b", -1, kv.Absent)
		s.expect("/a", kv.Latest, show([]byte("2"), r2))
		s.expect("/b", kv.Latest, "")
	}},
	{"a deleted key is absent and may be created again", func(s *store) {
		r1 := s.create("/a", "1")
		r2 := s.remove("/a", r1)
		s.expectConflict(kv.Write{Key: "/a", Value: []byte("x"), Expect: r1}, "/a", r1, kv.Absent)
		s.expectConflict(kv.Write{Key: "/a", Value: []byte("x"), Expect: r2}, "/a", r2, kv.Absent)
		s.expectConflict(kv.Write{Key: "/a", Expect: r2}, "/a", r2, kv.Absent)
		r3 := s.create("/a", "2")
		s.expectConflict(kv.Write{Key: "/a", Expect: r1}, "/a", r1, r3)
		s.remove("/a", r3)
	}},
	{"a delete that expects nothing is a conflict", func(s *store) {
		s.expectConflict(kv.Write{Key: "/a"}, "/a", kv.Absent, kv.Absent)
		r := s.create("/a", "1")
		s.expectConflict(kv.Write{Key: "/a"}, "/a", kv.Absent, r)
		s.expect("/a", kv.Latest, show([]byte("1"), r))
	}},
	{"a write needs its guards where it saw them", testGuards},
	{"a write with others happens as a whole or not at all", testWith},
	{"revisions grow by every write", func(s *store) {
		last := s.revision()
		for range 50 {
			r := s.create("/a", "x")
			d := s.remove("/a", r)
			if r <= last || d <= r {
				s.Fatalf("after revision %d came %d and %d", last, r, d)
			}
			last = d
			if got := s.revision(); got < last {
				s.Fatalf("revision says %d after a write at %d", got, last)
			}
		}
	}},
	{"an ended context writes nothing", func(s *store) {
		ctx, cancel := endedContext(s)
		defer cancel()
		before := s.revision()
		_, err := s.Commit(ctx, kv.Write{Key: "/a", Value: []byte("x")})
		if s.except[UncertainWrites] && errors.Is(err, kv.ErrUncertain) {
			return
		}
		s.expectError("commit", err, context.Canceled)
		if got := s.revision(); got != before && !s.except[UsedStore] {
			s.Errorf("revision moved from %d to %d", before, got)
		}
		s.expect("/a", kv.Latest, "")
	}},
	{"values of all sizes come back", func(s *store) {
		sizes := []int{1, 100, 4095, 4096, 4097, 65536, 1 << 20}
		for _, size := range sizes {
			value := strings.Repeat("0123456789abcdef", size/16+1)[:size]
			r := s.create("/size", value)
			s.expect("/size", kv.Latest, show([]byte(value), r))
			s.remove("/size", r)
		}
	}},
	{"a value over the limit is refused", func(s *store) {
		if s.valueLimit == 0 {
			s.Skip("the backend has no limit")
		}
		r := s.create("/a", strings.Repeat("x", s.valueLimit))
		_, err := s.Commit(s.ctx, kv.Write{Key: "/a", Value: make([]byte, s.valueLimit+1), Expect: r})
		var large *kv.TooLargeError
		if !errors.As(err, &large) || large.Size != s.valueLimit+1 || large.Limit != s.valueLimit {
			s.Errorf("got error %v", err)
		}
		// The expectations in With are checked.
		_, err = s.Commit(s.ctx, kv.Write{
			Key: "/a", Value: make([]byte, s.valueLimit-9), Expect: r,
			With: []kv.Change{{Key: "/b", Value: make([]byte, 10)}},
		})
		if !errors.As(err, &large) || large.Size != s.valueLimit+1 {
			s.Errorf("with another: got error %v", err)
		}
		if got := s.revision(); got != r && !s.except[UsedStore] {
			s.Errorf("revision moved from %d to %d", r, got)
		}
	}},
}

func testWith(s *store) {
	ns := s.create("/ns/x", "1")
	old := s.create("/old", "1")
	changed := s.create("/changed", "1")
	write := func(with ...kv.Change) kv.Write {
		return kv.Write{Key: "/o/1", Value: []byte("v"), Guards: []kv.Guard{{Key: "/ns/x", Revision: ns}}, With: with}
	}
	put := kv.Change{Key: "/new", Value: []byte("n")}
	replace := kv.Change{Key: "/changed", Value: []byte("2"), Expect: changed}
	remove := kv.Change{Key: "/old", Expect: old}

	// An impossible change, of each kind. Its error precedes those of guards.
	s.expectConflict(write(put, kv.Change{Key: "/old", Expect: old + 1}), "/old", old+1, old)
	s.expectConflict(write(put, kv.Change{Key: "/old", Value: []byte("x")}), "/old", kv.Absent, old)
	s.expectConflict(write(put, kv.Change{Key: "/none", Value: []byte("x"), Expect: old}), "/none", old, kv.Absent)
	s.expectConflict(write(put, kv.Change{Key: "/none"}), "/none", kv.Absent, kv.Absent)
	both := write(kv.Change{Key: "/old", Expect: old + 1})
	both.Guards[0].Revision = ns + 1
	s.expectConflict(both, "/ns/x", ns+1, ns)
	s.expect("/o/1", kv.Latest, "")
	s.expect("/new", kv.Latest, "")

	before := s.revision()
	r, err := s.Commit(s.ctx, write(put, replace, remove))
	if err != nil {
		s.Fatal(err)
	}
	last := s.revision()
	s.expect("/o/1", r, show([]byte("v"), r))
	if s.except[OneRevision] {
		s.expectList(kv.Range{Prefix: "/", Revision: r}, fmt.Sprintf("/changed=2@%d /new=n@%d /ns/x=1@%d /o/1=v@%d", r, r, ns, r))
	} else {
		s.expectList(kv.Range{Prefix: "/", Revision: r + 3}, fmt.Sprintf("/changed=2@%d /new=n@%d /ns/x=1@%d /o/1=v@%d", r+2, r+1, ns, r))
		if last != r+3 && !s.except[UsedStore] {
			s.Errorf("a write of four changes at %d left the store at %d", r, last)
		}
	}
	keys := ""
	for _, e := range s.events("/", before, last) {
		keys += e.Key + " "
	}
	if want := "/o/1 /new /changed /old "; keys != want {
		s.Errorf("the events are of %s, want %s", keys, want)
	}
	// A deletion changes others, too.
	if _, err := s.Commit(s.ctx, kv.Write{Key: "/o/1", Expect: r, With: []kv.Change{{Key: "/old", Value: []byte("3")}}}); err != nil {
		s.Fatal(err)
	}
	s.expect("/o/1", kv.Latest, "")
	if record, err := s.Get(s.ctx, "/old", kv.Latest); err != nil || string(record.Value) != "3" {
		s.Errorf("what came with the deletion is %q, %v", record.Value, err)
	}
}

func testGuards(s *store) {
	ns := s.create("/ns/x", "1")
	crd := s.create("/crd/y", "1")
	// Guards that hold.
	r := s.put("/o/1", "v", kv.Absent, kv.Guard{Key: "/ns/x", Revision: ns}, kv.Guard{Key: "/crd/y", Revision: crd})
	r = s.put("/o/1", "w", r, kv.Guard{Key: "/ns/none", Revision: kv.Absent})

	// A guard that fails, of each kind.
	newer := s.put("/crd/y", "2", crd)
	write := func(guards ...kv.Guard) kv.Write {
		return kv.Write{Key: "/o/1", Value: []byte("x"), Expect: r, Guards: guards}
	}
	s.expectConflict(write(kv.Guard{Key: "/ns/x", Revision: ns}, kv.Guard{Key: "/crd/y", Revision: crd}), "/crd/y", crd, newer)
	s.expectConflict(write(kv.Guard{Key: "/crd/y", Revision: kv.Absent}), "/crd/y", kv.Absent, newer)
	s.expectConflict(write(kv.Guard{Key: "/ns/none", Revision: ns}), "/ns/none", ns, kv.Absent)
	gone := s.remove("/ns/x", ns)
	s.expectConflict(write(kv.Guard{Key: "/ns/x", Revision: ns}), "/ns/x", ns, kv.Absent)
	s.expectConflict(write(kv.Guard{Key: "/ns/x", Revision: gone}), "/ns/x", gone, kv.Absent)

	// The key itself is reported before its guards, and a delete has guards too.
	both := write(kv.Guard{Key: "/ns/x", Revision: ns})
	both.Expect = r - 1
	s.expectConflict(both, "/o/1", r-1, r)
	s.expectConflict(kv.Write{Key: "/o/1", Expect: r, Guards: both.Guards}, "/ns/x", ns, kv.Absent)
	s.expect("/o/1", kv.Latest, show([]byte("w"), r))
	if _, err := s.Commit(s.ctx, kv.Write{Key: "/o/1", Expect: r, Guards: []kv.Guard{{Key: "/crd/y", Revision: newer}}}); err != nil {
		s.Errorf("deleting with a guard that holds: %v", err)
	}
}

func endedContext(s *store) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	return ctx, cancel
}
