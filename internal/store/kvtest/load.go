package kvtest

import (
	"errors"

	"github.com/anykind/anykind/internal/store/kv"
)

// loadTests are for a backend that is a kv.Loader.
var loadTests = []test{
	{"a value is loaded by the revision of its write", func(s *store) {
		loader := kv.LoaderOf(s.Backend)
		if loader == nil {
			return
		}
		load := func(key string, revision int64) ([]byte, error) { return loader.Load(s.ctx, key, revision) }
		expect := func(key string, revision int64, want string) {
			s.Helper()
			if got, err := load(key, revision); err != nil || got == nil || string(got) != want {
				s.Errorf("load %s at %d: %q, %v, want %q", key, revision, got, err, want)
			}
		}
		gone := func(key string, revision int64) {
			s.Helper()
			var compacted *kv.CompactedError
			if _, err := load(key, revision); !errors.As(err, &compacted) || compacted.Asked != revision {
				s.Errorf("load %s at %d: %v", key, revision, err)
			}
		}
		r1 := s.create("/a", "1")
		r2 := s.create("/empty", "")
		r3 := s.put("/a", "2", r1)
		r4 := s.create("/gone", "3")
		r5 := s.remove("/gone", r4)
		expect("/a", r1, "1")
		expect("/a", r3, "2")
		expect("/empty", r2, "")
		expect("/gone", r4, "3")
		gone("/a", r2) // it was written before
		gone("/gone", r5)
		gone("/b", r3)
		_, err := load("/a", r5+1)
		s.expectFuture("load", err, r5+1, r5)

		s.compact(r5)
		expect("/a", r3, "2") // older than the oldest state, and still current
		expect("/empty", r2, "")
		if value, err := load("/a", r1); err != nil { // a backend may keep more
			gone("/a", r1)
		} else if string(value) != "1" {
			s.Errorf("%q", value)
		}
		if err := s.Close(); err != nil {
			s.Fatal(err)
		}
		if _, err := load("/a", r3); err != kv.ErrClosed {
			s.Errorf("load from a closed store: %v", err)
		}
	}},
	{"a kept value is loaded", func(s *store) {
		loader := kv.LoaderOf(s.Backend)
		keeper, ok := kv.As[kv.Keeper](s.Backend)
		if loader == nil || !ok {
			return
		}
		r1 := s.create("/a", "1")
		r2 := s.put("/a", "2", r1)
		release, err := keeper.Keep(r1)
		if err != nil {
			s.Fatal(err)
		}
		defer release()
		s.compact(r2)
		if value, err := loader.Load(s.ctx, "/a", r1); string(value) != "1" || err != nil {
			s.Errorf("%q, %v", value, err)
		}
	}},
}
