package kvtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

// watch is Watch, checked.
func (s *store) watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return CheckWatch(s.Errorf, prefix, after, s.Watch(ctx, prefix, after))
}

// events returns the events of a watch from after until a revision.
func (s *store) events(prefix string, after, until int64) []kv.Event {
	s.Helper()
	var events []kv.Event
	for batch, err := range s.watch(s.ctx, prefix, after) {
		if err != nil {
			s.Fatalf("watch of %q after %d, waiting for %d: %v", prefix, after, until, err)
		}
		events = append(events, batch.Events...)
		if batch.Revision >= until {
			break
		}
	}
	return events
}

// expectEvents checks the events of a watch.
func (s *store) expectEvents(prefix string, after, until int64, want ...string) {
	s.Helper()
	var got []string
	for _, e := range s.events(prefix, after, until) {
		got = append(got, showEvent(e))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		s.Errorf("watch of %q after %d:\n%s\nwant:\n%s", prefix, after, g, w)
	}
}

// watchError returns the error at the end of a watch.
func (s *store) watchError(ctx context.Context, prefix string, after int64) error {
	for _, err := range s.watch(ctx, prefix, after) {
		if err != nil {
			return err
		}
	}
	return nil
}

var watchTests = []test{
	{"events have the note of their write", func(s *store) {
		if s.except[NoNotes] {
			return
		}
		r0 := s.revision()
		commit := func(w kv.Write) int64 {
			s.Helper()
			revision, err := s.Commit(s.ctx, w)
			if err != nil {
				s.Fatal(err)
			}
			return revision
		}
		r1 := commit(kv.Write{Key: "/a", Value: []byte("1"), Note: []byte("alice"), With: []kv.Change{{Key: "/b", Value: []byte("2")}}})
		r2 := commit(kv.Write{Key: "/a", Expect: r1, Note: []byte("bob")})
		r3 := commit(kv.Write{Key: "/a", Value: []byte{}})
		var got []string
		for _, e := range s.events("/", r0, r3) {
			got = append(got, fmt.Sprintf("%s@%d %q", e.Key, e.Revision, e.Note))
		}
		want := fmt.Sprintf(`[/a@%d "alice" /b@%d "alice" /a@%d "bob" /a@%d ""]`, r1, r1+1, r2, r3)
		if g := fmt.Sprint(got); g != want {
			s.Errorf("the notes are %s, want %s", g, want)
		}
	}},
	{"events say what changed and what was before", func(s *store) {
		r0 := s.revision()
		r1 := s.create("/a", "1")
		r2 := s.put("/a", "2", r1)
		r3 := s.put("/a", "", r2)
		r4 := s.remove("/a", r3)
		r5 := s.create("/a", "3")
		s.expectEvents("/a", r0, r5,
			fmt.Sprintf("/a=1@%d (was -@0)", r1),
			fmt.Sprintf("/a=2@%d (was 1@%d)", r2, r1),
			fmt.Sprintf("/a=@%d (was 2@%d)", r3, r2),
			fmt.Sprintf("/a=-@%d (was @%d)", r4, r3),
			fmt.Sprintf("/a=3@%d (was -@0)", r5))
	}},
	{"a watch starts after any kept revision", func(s *store) {
		revisions := []int64{s.revision()}
		var all []string
		for i := range 10 {
			r := s.create(fmt.Sprintf("/k%d", i), "v")
			revisions = append(revisions, r)
			all = append(all, fmt.Sprintf("/k%d=v@%d (was -@0)", i, r))
		}
		for i, after := range revisions[:len(revisions)-1] {
			s.expectEvents("/k", after, revisions[10], all[i:]...)
		}
	}},
	{"a watch is of its prefix only", func(s *store) {
		r0 := s.revision()
		s.create("/a", "v")
		s.create("/b", "v")
		r1 := s.create("/b/", "v")
		r2 := s.create("/b/1", "v")
		s.create("/b0", "v")
		s.create("/c/b/1", "v")
		r3 := s.create("/b/\xff", "v")
		s.expectEvents("/b/", r0, r3,
			fmt.Sprintf("/b/=v@%d (was -@0)", r1),
			fmt.Sprintf("/b/1=v@%d (was -@0)", r2),
			fmt.Sprintf("/b/\xff=v@%d (was -@0)", r3))
		if got := len(s.events("", r0, r3)); got != 7 {
			s.Errorf("a watch of everything has %d events, want 7", got)
		}
		if got := len(s.events("/b", r0, r3)); got != 5 {
			s.Errorf("a watch of /b has %d events, want 5", got)
		}
	}},
	{"a watch goes on as things happen", testWatchLive},
	{"the first batch comes although nothing happens", func(s *store) {
		s.skipIf(LateProgress)
		r := s.create("/a", "1")
		for _, after := range []int64{r, kv.Latest} {
			for batch, err := range s.watch(s.ctx, "/a", after) {
				if err != nil || len(batch.Events) != 0 || batch.Revision != r {
					s.Errorf("watch after %d: got %+v, %v; want progress at %d", after, batch, err, r)
				}
				break
			}
		}
	}},
	{"progress comes although nothing happens to the prefix", func(s *store) {
		s.skipIf(LateProgress)
		next, stop := iter.Pull2(s.watch(s.ctx, "/quiet", kv.Latest))
		defer stop()
		batch, err, _ := next()
		if err != nil {
			s.Fatal(err)
		}
		for i := range 10 {
			written := s.create(fmt.Sprintf("/loud/%d", i), "v")
			for batch.Revision < written {
				if batch, err, _ = next(); err != nil || len(batch.Events) != 0 {
					s.Fatalf("got %+v, %v; want progress to %d", batch, err, written)
				}
			}
		}
	}},
	{"a watch from the future is an error", func(s *store) {
		r := s.create("/a", "1")
		s.expectFuture("watch", s.watchError(s.ctx, "/a", r+1), r+1, r)
	}},
	{"a watch ends with its context", func(s *store) {
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		ended := make(chan error)
		go func() { ended <- s.watchError(ctx, "/a", s.revision()) }()
		cancel()
		s.expectError("watch", <-ended, context.Canceled)
		s.expectError("watch of an ended context", s.watchError(ctx, "/a", s.revision()), context.Canceled)
	}},
	{"a watch may be left and ranged over again", func(s *store) {
		r0 := s.revision()
		r1 := s.create("/a", "1")
		watch := s.watch(s.ctx, "/a", r0)
		for range 3 {
			for batch, err := range watch {
				if err != nil {
					s.Fatal(err)
				}
				if len(batch.Events) > 0 && batch.Events[0].Revision != r1 {
					s.Errorf("got %+v", batch)
				}
				if batch.Revision >= r1 {
					break
				}
			}
		}
	}},
	{"a slow consumer delays no other one and misses nothing", testWatchSlow},
	{"a consumer too slow for what is kept is told so", testWatchTooSlow},
}

func (s *store) skipIf(e Exception) {
	if s.except[e] {
		s.Skip(string(e))
	}
}

// testWatchLive alternates writing and receiving.
func testWatchLive(s *store) {
	r := s.create("/a", "0")
	next, stop := iter.Pull2(s.watch(s.ctx, "/a", r))
	defer stop()
	for i := 1; i <= 20; i++ {
		prev := r
		r = s.put("/a", fmt.Sprint(i), prev)
		s.create(fmt.Sprintf("/other/%d", i), "v")
		var batch kv.Batch
		for len(batch.Events) == 0 {
			var err error
			if batch, err, _ = next(); err != nil {
				s.Fatal(err)
			}
		}
		want := fmt.Sprintf("/a=%d@%d (was %d@%d)", i, r, i-1, prev)
		if got := showEvent(batch.Events[0]); len(batch.Events) != 1 || got != want {
			s.Fatalf("got %d events, first %s; want one, %s", len(batch.Events), got, want)
		}
	}
}

// testWatchSlow has a consumer that takes one batch and then none during many writes. Another consumer
// sees them meanwhile.
func testWatchSlow(s *store) {
	const writes = 2*kv.BatchEvents + 150 // more than two batches
	r0 := s.revision()
	last := s.create("/a", "0")
	slow, stop := iter.Pull2(s.watch(s.ctx, "/", r0))
	defer stop()
	batch, err, _ := slow()
	if err != nil {
		s.Fatal(err)
	}
	for i := range writes {
		last = s.put("/a", fmt.Sprint(i), last)
	}
	if got := len(s.events("/", r0, last)); got != writes+1 {
		s.Errorf("the quick consumer saw %d events, want %d", got, writes+1)
	}
	count := len(batch.Events)
	for batch.Revision < last {
		if batch, err, _ = slow(); err != nil {
			s.Fatal(err)
		}
		count += len(batch.Events)
	}
	if count != writes+1 {
		s.Errorf("the slow consumer saw %d events, want %d", count, writes+1)
	}
}

// testWatchTooSlow compacts events that a consumer has not taken. A backend may still have them; then
// none may be missing.
func testWatchTooSlow(s *store) {
	r0 := s.revision()
	last := s.create("/a", "0")
	next, stop := iter.Pull2(s.watch(s.ctx, "/", r0))
	defer stop()
	batch, err, _ := next()
	if err != nil {
		s.Fatal(err)
	}
	for i := range 100 {
		last = s.put("/a", fmt.Sprint(i), last)
	}
	s.compact(last)
	count := len(batch.Events)
	for batch.Revision < last {
		if batch, err, _ = next(); err != nil {
			var compacted *kv.CompactedError
			if !errors.As(err, &compacted) || compacted.Oldest != last {
				s.Errorf("got error %v, want that the oldest is %d", err, last)
			}
			return
		}
		count += len(batch.Events)
	}
	if count != 101 {
		s.Errorf("the watch went on with a gap: %d events, want 101", count)
	}
}
