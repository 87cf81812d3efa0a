package memkv

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// The history stays within its limit under any number of writes, and the current state is complete.
func TestThePastIsBounded(t *testing.T) {
	const most, size, keys = 100_000, 10_000, 3
	s := New(Options{MaxPastBytes: most})
	defer s.Close()
	var at [keys]int64
	for i := range 100 {
		k := i % keys
		revision, err := s.Commit(t.Context(), kv.Write{
			Key: fmt.Sprint("/k/", k), Value: bytes.Repeat([]byte{byte(i)}, size), Expect: at[k],
		})
		if err != nil {
			t.Fatal(err)
		}
		at[k] = revision
		if s.past > most {
			t.Fatalf("after %d writes, the past takes %d bytes", i+1, s.past)
		}
	}
	held := int64(0)
	s.keys.Scan(func(_ string, k *written) bool {
		held += int64(size * (len(k.versions) - 1))
		return true
	})
	if held > most || held < most/2 {
		t.Errorf("%d bytes are kept that are not current, want nearly %d", held, most)
	}
	for k := range keys {
		if r, err := s.Get(t.Context(), fmt.Sprint("/k/", k), kv.Latest); err != nil || r.Revision != at[k] {
			t.Errorf("key %d is at %d, %v; want %d", k, r.Revision, err, at[k])
		}
	}
	var compacted *kv.CompactedError
	if _, err := s.Get(t.Context(), "/k/0", s.oldest-1); !errors.As(err, &compacted) || compacted.Oldest != s.oldest {
		t.Errorf("what is gone: %v", err)
	}
	seen := 0
	for batch, err := range s.Watch(t.Context(), "/", s.oldest) {
		if err != nil {
			t.Fatal(err)
		}
		if seen += len(batch.Events); batch.Revision == s.newest {
			break
		}
	}
	if want := int(s.newest - s.oldest); seen != want {
		t.Errorf("a watch from the oldest revision on saw %d events, want %d", seen, want)
	}
	// A compaction continues from there.
	if err := s.Compact(t.Context(), s.newest); err != nil || s.past != 0 || len(s.log) != 0 {
		t.Errorf("compacted, the past takes %d bytes in %d events, %v", s.past, len(s.log), err)
	}
}

// BenchmarkFullPast writes one key with a history at its limit.
func BenchmarkFullPast(b *testing.B) {
	s := New(Options{MaxPastBytes: 32 << 20})
	defer s.Close()
	var at int64
	write := func() {
		revision, err := s.Commit(b.Context(), kv.Write{Key: "/k", Value: []byte("v"), Expect: at})
		if err != nil {
			b.Fatal(err)
		}
		at = revision
	}
	for s.past < 32<<20-1000 {
		write()
	}
	for b.Loop() {
		write()
	}
}
