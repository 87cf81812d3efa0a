package memkv_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/memkv"
)

func put(t *testing.T, s *memkv.Store, key, value string, expect int64) int64 {
	t.Helper()
	revision, err := s.Commit(t.Context(), kv.Write{Key: key, Value: []byte(value), Expect: expect})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func get(t *testing.T, s *memkv.Store, key string) string {
	t.Helper()
	r, err := s.Get(t.Context(), key, kv.Latest)
	if errors.Is(err, kv.ErrNotFound) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Value)
}

// Stores of one snapshot, and the store it was taken of, are independent.
func TestSnapshot(t *testing.T) {
	s := memkv.New(memkv.Options{})
	defer s.Close()
	put(t, s, "/gone", "x", 0)
	a := put(t, s, "/a", "first", put(t, s, "/a", "zeroth", 0))
	if _, err := s.Commit(t.Context(), kv.Write{Key: "/gone", Expect: 2}); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "/a", "second", a)
	put(t, s, "/later", "x", 0)
	if err := s.Compact(t.Context(), taken.Revision()+2); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			mine := memkv.New(memkv.Options{Over: taken})
			defer mine.Close()
			if at, err := mine.Revision(t.Context()); err != nil || at != taken.Revision() {
				t.Errorf("it is at revision %d, %v; want %d", at, err, taken.Revision())
			}
			if got := get(t, mine, "/a") + get(t, mine, "/later") + get(t, mine, "/gone"); got != "firstnonenone" {
				t.Errorf("it begins with %s", got)
			}
			value := fmt.Sprint("mine ", i)
			at := put(t, mine, "/a", value, a)
			if got := get(t, mine, "/a"); got != value {
				t.Errorf("%q was written, and %q read", value, got)
			}
			if _, err := mine.Commit(t.Context(), kv.Write{Key: "/a", Expect: at}); err != nil {
				t.Error(err)
			}
			if err := mine.Compact(t.Context(), at+1); err != nil {
				t.Error(err)
			}
			var compacted *kv.CompactedError
			if _, err := mine.Get(t.Context(), "/a", taken.Revision()-1); !errors.As(err, &compacted) {
				t.Errorf("what was before: %v", err)
			}
		})
	}
	group.Wait()
	if got := get(t, s, "/a"); got != "second" {
		t.Errorf("the store that it was taken of has %q", got)
	}
}

// A store that begins with a snapshot keeps the contract.
func TestContractFromSnapshot(t *testing.T) {
	empty, err := memkv.New(memkv.Options{}).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Run(t, func(testing.TB) kv.Backend {
		return memkv.New(memkv.Options{MaxValueBytes: limit, Over: empty})
	}, kvtest.ValueLimit(limit))
}
