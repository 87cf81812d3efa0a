package kvtest

import (
	"fmt"

	"github.com/anykind/anykind/internal/store/kv"
)

var compactTests = []test{
	{"what is older is gone, the rest stays", func(s *store) {
		r1 := s.create("/a", "1")
		r2 := s.create("/b", "1")
		r3 := s.put("/a", "2", r1)
		r4 := s.put("/a", "3", r3)
		s.compact(r3)
		_, err := s.Get(s.ctx, "/a", r2)
		s.expectCompacted("get", err, r2, r3)
		_, err = s.List(s.ctx, kv.Range{Revision: r1})
		s.expectCompacted("list", err, r1, r3)
		s.expectCompacted("watch", s.watchError(s.ctx, "/", r2), r2, r3)
		s.expect("/a", r3, show([]byte("2"), r3))
		s.expect("/b", r3, show([]byte("1"), r2))
		s.expectList(kv.Range{Revision: r3}, fmt.Sprintf("/a=2@%d /b=1@%d", r3, r2))
		s.expectList(kv.Range{}, fmt.Sprintf("/a=3@%d /b=1@%d", r4, r2))
		s.expectEvents("/", r3, r4, fmt.Sprintf("/a=3@%d (was 2@%d)", r4, r3))
	}},
	{"what an event says was before is kept with it", func(s *store) {
		r1 := s.create("/a", "1")
		r2 := s.create("/b", "1")
		s.compact(r2)
		r3 := s.put("/a", "2", r1)
		r4 := s.remove("/b", r2)
		s.expectEvents("/", r2, r4,
			fmt.Sprintf("/a=2@%d (was 1@%d)", r3, r1),
			fmt.Sprintf("/b=-@%d (was 1@%d)", r4, r2))
	}},
	{"a deleted key stays deleted", func(s *store) {
		r1 := s.create("/a", "1")
		r2 := s.remove("/a", r1)
		s.compact(r2)
		s.expect("/a", r2, "")
		s.expectList(kv.Range{}, "")
		s.expectConflict(kv.Write{Key: "/a", Value: []byte("x"), Expect: r1}, "/a", r1, kv.Absent)
		r3 := s.create("/a", "2")
		s.expectEvents("/a", r2, r3, fmt.Sprintf("/a=2@%d (was -@0)", r3))
	}},
	{"the newest revision stays when its write is forgotten", func(s *store) {
		r := s.remove("/a", s.create("/a", "1"))
		s.compact(r)
		if got := s.revision(); got != r && !s.except[UsedStore] {
			s.Errorf("revision %d, want %d", got, r)
		}
		if next := s.create("/a", "2"); next <= r {
			s.Errorf("a write at %d after one at %d", next, r)
		}
	}},
	{"compacting again changes nothing", func(s *store) {
		r1 := s.create("/a", "1")
		r2 := s.put("/a", "2", r1)
		s.compact(r2)
		for _, again := range []int64{r2, r1, 1, kv.Latest, -5} {
			s.compact(again)
		}
		_, err := s.Get(s.ctx, "/a", r1)
		s.expectCompacted("get", err, r1, r2)
		s.expect("/a", kv.Latest, show([]byte("2"), r2))
	}},
	{"a kept state stays until it is released", func(s *store) {
		keeper, ok := kv.As[kv.Keeper](s.Backend)
		if !ok {
			return
		}
		r1 := s.create("/a", "1")
		r2 := s.put("/a", "2", r1)
		r3 := s.remove("/a", r2)
		keep := func(revision int64) func() {
			release, err := keeper.Keep(revision)
			if err != nil {
				s.Fatal(err)
			}
			return release
		}
		first, second, newer := keep(r2), keep(r2), keep(r3)
		s.compact(r3)
		s.expect("/a", r2, show([]byte("2"), r2))
		_, err := s.Get(s.ctx, "/a", r1)
		s.expectCompacted("get", err, r1, r2)
		_, err = keeper.Keep(r1)
		s.expectCompacted("keep", err, r1, r2)
		_, err = keeper.Keep(r3 + 100)
		s.expectFuture("keep", err, r3+100, r3)
		first()
		first()
		s.compact(r3)
		s.expectEvents("/", r2, r3, fmt.Sprintf("/a=-@%d (was 2@%d)", r3, r2))
		second()
		s.compact(r3)
		_, err = s.Get(s.ctx, "/a", r2)
		s.expectCompacted("get", err, r2, r3)
		newer()
	}},
	{"the future cannot be compacted", func(s *store) {
		r := s.create("/a", "1")
		s.expectFuture("compact", s.Compact(s.ctx, r+1), r+1, r)
		s.expect("/a", r, show([]byte("1"), r))
	}},
	{"an empty store may be compacted", func(s *store) {
		s.compact(s.revision())
		r := s.create("/a", "1")
		s.expect("/a", kv.Latest, show([]byte("1"), r))
	}},
	{"compaction in steps agrees with every state it keeps", func(s *store) {
		at := map[int64]string{}
		held := map[string]int64{}
		var revisions []int64
		for i := range 200 {
			key := fmt.Sprintf("/k/%02d", i*7%20)
			var r int64
			if i%5 == 4 && held[key] != kv.Absent {
				r = s.remove(key, held[key])
				held[key] = kv.Absent
			} else {
				r = s.put(key, fmt.Sprint(i), held[key])
				held[key] = r
			}
			at[r] = s.list(kv.Range{})
			revisions = append(revisions, r)
		}
		for i := 9; i < len(revisions); i += 10 {
			s.compact(revisions[i])
			for _, r := range revisions[i:] {
				s.expectList(kv.Range{Revision: r}, at[r])
			}
		}
	}},
}
