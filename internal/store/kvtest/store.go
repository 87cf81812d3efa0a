package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// A store is a backend under test, with calls that fail the test on errors.
type store struct {
	testing.TB
	kv.Backend
	options

	ctx context.Context
}

func newStore(t testing.TB, b kv.Backend, o options) *store {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(func() {
		cancel()
		if err := b.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return &store{TB: t, Backend: b, options: o, ctx: ctx}
}

// put writes value to key, which must have the revision expect, and returns the new one.
func (s *store) put(key, value string, expect int64, guards ...kv.Guard) int64 {
	s.Helper()
	revision, err := s.Commit(s.ctx, kv.Write{Key: key, Value: []byte(value), Expect: expect, Guards: guards})
	if err != nil {
		s.Fatalf("writing %q at %d: %v", key, expect, err)
	}
	return revision
}

// create writes a new key and returns its revision.
func (s *store) create(key, value string) int64 {
	s.Helper()
	return s.put(key, value, kv.Absent)
}

// remove deletes key, which must have the revision expect, and returns the revision of the deletion.
func (s *store) remove(key string, expect int64) int64 {
	s.Helper()
	revision, err := s.Commit(s.ctx, kv.Write{Key: key, Expect: expect})
	if err != nil {
		s.Fatalf("deleting %q at %d: %v", key, expect, err)
	}
	return revision
}

func (s *store) revision() int64 {
	s.Helper()
	revision, err := s.Revision(s.ctx)
	if err != nil {
		s.Fatalf("revision: %v", err)
	}
	return revision
}

func (s *store) compact(revision int64) {
	s.Helper()
	if err := s.Compact(s.ctx, revision); err != nil {
		s.Fatalf("compacting to %d: %v", revision, err)
	}
}

// expect checks the record of a key at a revision; want is "value@revision", or "" for none.
func (s *store) expect(key string, revision int64, want string) {
	s.Helper()
	record, err := s.Get(s.ctx, key, revision)
	got := ""
	switch {
	case err == nil:
		got = show(record.Value, record.Revision)
		if record.Key != key || record.Value == nil {
			s.Errorf("get %q at %d: got record %+v", key, revision, record)
		}
	case !errors.Is(err, kv.ErrNotFound):
		s.Fatalf("get %q at %d: %v", key, revision, err)
	}
	if got != want {
		s.Errorf("get %q at %d: got %q, want %q", key, revision, got, want)
	}
}

// list reads a range as one line of "key=value@revision", with a final "..." if there is more.
func (s *store) list(r kv.Range) string {
	s.Helper()
	page, err := s.List(s.ctx, r)
	if err != nil {
		s.Fatalf("list %+v: %v", r, err)
	}
	if page.Revision <= 0 || (r.Revision != kv.Latest && page.Revision != r.Revision) {
		s.Errorf("list %+v: the page is of revision %d", r, page.Revision)
	}
	return showPage(page)
}

// expectList checks what list reads.
func (s *store) expectList(r kv.Range, want string) {
	s.Helper()
	if got := s.list(r); got != want {
		s.Errorf("list %+v:\n got %s\nwant %s", r, got, want)
	}
}

// expectConflict checks that a write fails because key is at actual.
func (s *store) expectConflict(w kv.Write, key string, expected, actual int64) {
	s.Helper()
	before := s.revision()
	_, err := s.Commit(s.ctx, w)
	var conflict *kv.ConflictError
	if !errors.As(err, &conflict) {
		s.Fatalf("commit %+v: got error %v, want a conflict", w, err)
	}
	if conflict.Key != key || conflict.Expected != expected || conflict.Actual.Revision != actual {
		s.Errorf("commit %+v: conflict says key %q expected %d actual %d, want %q, %d, %d",
			w, conflict.Key, conflict.Expected, conflict.Actual.Revision, key, expected, actual)
	}
	if after := s.revision(); after != before && !s.except[UsedStore] {
		s.Errorf("a conflict moved the revision from %d to %d", before, after)
	}
}

// expectCompacted checks for a CompactedError.
func (s *store) expectCompacted(what string, err error, asked, oldest int64) {
	s.Helper()
	var compacted *kv.CompactedError
	if !errors.As(err, &compacted) {
		s.Fatalf("%s: got error %v, want that it is compacted", what, err)
	}
	if compacted.Asked != asked || compacted.Oldest != oldest {
		s.Errorf("%s: error says asked %d, oldest %d; want %d, %d", what, compacted.Asked, compacted.Oldest, asked, oldest)
	}
}

// expectFuture checks for a FutureError.
func (s *store) expectFuture(what string, err error, asked, newest int64) {
	s.Helper()
	var future *kv.FutureError
	if !errors.As(err, &future) {
		s.Fatalf("%s: got error %v, want that it is in the future", what, err)
	}
	if future.Asked != asked || future.Newest != newest {
		s.Errorf("%s: error says asked %d, newest %d; want %d, %d", what, future.Asked, future.Newest, asked, newest)
	}
}

func (s *store) expectError(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func show(value []byte, revision int64) string {
	return fmt.Sprintf("%s@%d", value, revision)
}

func showPage(page kv.Page) string {
	var b strings.Builder
	for _, r := range page.Records {
		fmt.Fprintf(&b, "%s=%s ", r.Key, show(r.Value, r.Revision))
	}
	if page.More {
		b.WriteString("...")
	}
	return strings.TrimSpace(b.String())
}

// showEvent is "key=value@revision (was value@revision)"; a value that is not
// there is "-".
func showEvent(e kv.Event) string {
	return fmt.Sprintf("%s=%s (was %s)", e.Key, showNil(e.Value, e.Revision), showNil(e.Prev, e.PrevRevision))
}

func showNil(value []byte, revision int64) string {
	if value == nil {
		return fmt.Sprintf("-@%d", revision)
	}
	return show(value, revision)
}
