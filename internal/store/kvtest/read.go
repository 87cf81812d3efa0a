package kvtest

import (
	"fmt"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

var readTests = []test{
	{"a new store is at revision 1 and empty", func(s *store) {
		if got := s.revision(); got != 1 && !s.except[UsedStore] {
			s.Errorf("revision %d, want 1", got)
		}
		s.expect("/a", kv.Latest, "")
		s.expect("/a", s.revision(), "")
		s.expectList(kv.Range{}, "")
		if r := s.create("/a", "x"); r != 2 && !s.except[UsedStore] {
			s.Errorf("the first write is at revision %d, want 2", r)
		}
	}},
	{"every revision is a state of the map", func(s *store) {
		r0 := s.revision()
		r1 := s.create("/a", "1")
		r2 := s.create("/b", "1")
		r3 := s.put("/a", "2", r1)
		r4 := s.remove("/b", r2)
		r5 := s.create("/b", "3")
		s.expect("/a", r0, "")
		s.expect("/a", r1, show([]byte("1"), r1))
		s.expect("/a", r2, show([]byte("1"), r1))
		s.expect("/a", r3, show([]byte("2"), r3))
		s.expect("/b", r1, "")
		s.expect("/b", r3, show([]byte("1"), r2))
		s.expect("/b", r4, "")
		s.expect("/b", r5, show([]byte("3"), r5))
		s.expect("/b", kv.Latest, show([]byte("3"), r5))
		s.expectList(kv.Range{Revision: r0}, "")
		s.expectList(kv.Range{Revision: r2}, fmt.Sprintf("/a=1@%d /b=1@%d", r1, r2))
		s.expectList(kv.Range{Revision: r3}, fmt.Sprintf("/a=2@%d /b=1@%d", r3, r2))
		s.expectList(kv.Range{Revision: r4}, fmt.Sprintf("/a=2@%d", r3))
		s.expectList(kv.Range{}, fmt.Sprintf("/a=2@%d /b=3@%d", r3, r5))
	}},
	{"keys are counted", func(s *store) {
		counter, ok := kv.As[kv.Counter](s.Backend)
		if !ok {
			return
		}
		expect := func(prefix string, want int64) {
			s.Helper()
			if got, err := counter.Count(s.ctx, prefix, kv.Latest); got != want || err != nil {
				s.Errorf("%d keys below %s, %v, want %d", got, prefix, err, want)
			}
		}
		expect("/c/", 0)
		for i := range 10 {
			s.create(fmt.Sprintf("/c/%d", i), "1")
		}
		r := s.create("/cc", "1")
		s.put("/cc", "2", r)
		page, err := s.List(s.ctx, kv.Range{Prefix: "/c/", Limit: 1})
		if err != nil {
			s.Fatal(err)
		}
		s.remove(page.Records[0].Key, page.Records[0].Revision)
		expect("/c/", 9)
		expect("/c", 10)
		expect("/cc", 1)
	}},
	{"the future is an error", func(s *store) {
		newest := s.create("/a", "1")
		_, err := s.Get(s.ctx, "/a", newest+1)
		s.expectFuture("get", err, newest+1, newest)
		_, err = s.List(s.ctx, kv.Range{Revision: newest + 7})
		s.expectFuture("list", err, newest+7, newest)
	}},
	{"a negative revision is compacted", func(s *store) {
		oldest := s.create("/a", "1")
		s.compact(oldest)
		_, err := s.Get(s.ctx, "/a", -1)
		s.expectCompacted("get", err, -1, oldest)
		_, err = s.List(s.ctx, kv.Range{Revision: -1})
		s.expectCompacted("list", err, -1, oldest)
	}},
	{"an empty value is not absent", func(s *store) {
		r := s.create("/a", "")
		s.expect("/a", kv.Latest, show(nil, r))
		page, err := s.List(s.ctx, kv.Range{})
		if err != nil || len(page.Records) != 1 || page.Records[0].Value == nil {
			s.Errorf("list: got %+v, %v", page, err)
		}
		r = s.put("/a", "x", r)
		r = s.put("/a", "", r)
		s.remove("/a", r)
	}},
	{"keys and values are any bytes", func(s *store) {
		keys := []string{"\x00", "\x00\x00", "a", "a\x00", "a/", "aé", "a\xff", "a\xff\xff", "b", "\xff", "\xff\xff"}
		var want []string
		for _, key := range keys {
			want = append(want, fmt.Sprintf("%s=%s@%d", key, "\x00v"+key, s.create(key, "\x00v"+key)))
		}
		if got, want := strings.Fields(s.list(kv.Range{})), want; len(got) != len(want) || got[0] != want[0] {
			s.Errorf("got %q, want %q", got, want)
		}
		s.expectList(kv.Range{Prefix: "a\xff"}, want[6]+" "+want[7])
		s.expectList(kv.Range{Prefix: "\xff"}, want[9]+" "+want[10])
		s.expectList(kv.Range{Prefix: "\xff", After: "\xff"}, want[10])
		s.expectList(kv.Range{Prefix: "a", After: "a\xff\xff"}, "")
	}},
	{"a range is in byte order and ends with its prefix", testRange},
	{"pages of one revision are one state", testPages},
	{"an ended context is its own error", func(s *store) {
		ctx, cancel := endedContext(s)
		defer cancel()
		_, err := s.Get(ctx, "/a", kv.Latest)
		s.expectError("get", err, ctx.Err())
		_, err = s.List(ctx, kv.Range{})
		s.expectError("list", err, ctx.Err())
		_, err = s.Revision(ctx)
		s.expectError("revision", err, ctx.Err())
		s.expectError("compact", s.Compact(ctx, s.revision()), ctx.Err())
	}},
	{"what was returned never changes", testBytesStay},
}

func testRange(s *store) {
	at := map[string]int64{}
	for _, key := range []string{"/b/2", "/a/1", "/b", "/b/10", "/c/1", "/b0", "/b/1"} {
		at[key] = s.create(key, "v")
	}
	line := func(keys ...string) string {
		for i, key := range keys {
			keys[i] = key + "=" + show([]byte("v"), at[key])
		}
		return strings.Join(keys, " ")
	}
	s.expectList(kv.Range{}, line("/a/1", "/b", "/b/1", "/b/10", "/b/2", "/b0", "/c/1"))
	s.expectList(kv.Range{Prefix: "/b/"}, line("/b/1", "/b/10", "/b/2"))
	s.expectList(kv.Range{Prefix: "/b"}, line("/b", "/b/1", "/b/10", "/b/2", "/b0"))
	s.expectList(kv.Range{Prefix: "/b/1"}, line("/b/1", "/b/10"))
	s.expectList(kv.Range{Prefix: "/b/", After: "/b/1"}, line("/b/10", "/b/2"))
	s.expectList(kv.Range{Prefix: "/b/", After: "/b/11"}, line("/b/2"))
	s.expectList(kv.Range{Prefix: "/b/", After: "/a"}, line("/b/1", "/b/10", "/b/2"))
	s.expectList(kv.Range{Prefix: "/b/", After: "/c"}, "")
	s.expectList(kv.Range{After: "/b0"}, line("/c/1"))
	s.expectList(kv.Range{Prefix: "/d"}, "")
	s.expectList(kv.Range{Prefix: "/b/", Limit: 2}, line("/b/1", "/b/10")+" ...")
	s.expectList(kv.Range{Prefix: "/b/", Limit: 3}, line("/b/1", "/b/10", "/b/2"))
	s.expectList(kv.Range{Prefix: "/b/", Limit: 9}, line("/b/1", "/b/10", "/b/2"))
	s.remove("/b/2", at["/b/2"])
	s.expectList(kv.Range{Prefix: "/b/", Limit: 2}, line("/b/1", "/b/10"))
}

func testPages(s *store) {
	const n = 25
	var want []string
	var first int64
	for i := range n {
		key := fmt.Sprintf("/p/%02d", i)
		r := s.create(key, "v")
		want = append(want, key+"="+show([]byte("v"), r))
		if i == 0 {
			first = r
		}
	}
	r := kv.Range{Prefix: "/p/", Limit: 4}
	var got []string
	for page := 0; ; page++ {
		p, err := s.List(s.ctx, r)
		if err != nil {
			s.Fatalf("page %d: %v", page, err)
		}
		for _, record := range p.Records {
			got = append(got, record.Key+"="+show(record.Value, record.Revision))
		}
		if !p.More {
			break
		}
		// Writes between two pages are not visible.
		switch page {
		case 0:
			s.remove("/p/00", first)
			s.create("/p/99", "new")
		case 1:
			s.create("/p/10x", "new")
			record, err := s.Get(s.ctx, "/p/20", kv.Latest)
			if err != nil {
				s.Fatal(err)
			}
			s.put("/p/20", "changed", record.Revision)
		}
		r.Revision, r.After = p.Revision, p.Records[len(p.Records)-1].Key
	}
	if g, w := strings.Join(got, " "), strings.Join(want, " "); g != w {
		s.Errorf("pages:\n got %s\nwant %s", g, w)
	}
}

// testBytesStay holds the results of each kind of read while the store is written, compacted and
// closed.
func testBytesStay(s *store) {
	type held struct {
		what  string
		bytes []byte
		want  string
	}
	var kept []held
	value := func(i int) string { return strings.Repeat(fmt.Sprintf("value %d ", i), 100) }
	r := s.create("/a", value(0))
	for i := 1; i < 40; i++ {
		record, err := s.Get(s.ctx, "/a", kv.Latest)
		if err != nil {
			s.Fatal(err)
		}
		page, err := s.List(s.ctx, kv.Range{})
		if err != nil {
			s.Fatal(err)
		}
		kept = append(kept,
			held{"get", record.Value, value(i - 1)},
			held{"list", page.Records[0].Value, value(i - 1)})
		next := s.put("/a", value(i), r)
		for _, e := range s.events("/a", r, next) {
			kept = append(kept, held{"event", e.Value, value(i)}, held{"event's prev", e.Prev, value(i - 1)})
		}
		r = next
		if i%8 == 0 {
			s.compact(r)
		}
	}
	if err := s.Close(); err != nil {
		s.Fatal(err)
	}
	for _, h := range kept {
		if string(h.bytes) != h.want {
			s.Errorf("what %s returned has become %q", h.what, h.bytes)
		}
	}
}
