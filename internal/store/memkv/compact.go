package memkv

import (
	"context"

	"github.com/anykind/anykind/internal/store/kv"
)

// sweepLimit bounds how many events a compaction drops while it holds the lock.
const sweepLimit = 512

// fewVersions are so few that to copy them is cheap. Of a key with more, which is
// written all the time, the space of the old ones is given back when its next ones do
// not fit.
const fewVersions = 8

// Compact implements kv.Backend. Readers see the new oldest revision at once;
// what became unreachable is dropped in small steps, between which others run.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return kv.ErrClosed
	}
	if revision > s.newest {
		defer s.mu.Unlock()
		return &kv.FutureError{Asked: revision, Newest: s.newest}
	}
	s.oldest = max(s.oldest, revision)
	s.mu.Unlock()

	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	for s.sweep() {
	}
	return nil
}

// sweep drops the first events at or below the oldest kept revision, with the
// versions that they replaced, and says whether there may be more.
func (s *Store) sweep() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(int(s.oldest+1-s.logStart), sweepLimit, len(s.log))
	s.drop(n)
	return n == sweepLimit
}

// shed compacts what does not fit. It needs mu, and drops about as much as was added.
func (s *Store) shed() {
	for s.past > s.options.MaxPastBytes {
		s.oldest = max(s.oldest, s.logStart)
		s.drop(1)
	}
}

// drop forgets the first n events, which are not after the oldest kept revision.
func (s *Store) drop(n int) {
	for _, e := range s.log[:n] {
		s.forget(e)
		s.past -= pastBytes(e)
	}
	clear(s.log[:n])
	s.log = s.log[n:]
	s.logStart += int64(n)
}

// pastBytes is about how many bytes are kept only because an event is.
func pastBytes(e kv.Event) int64 {
	const fixed = 200
	return fixed + int64(len(e.Prev))
}

// forget drops what is not part of any state from e on: every version of its
// key before it, and if it deleted the key, itself.
func (s *Store) forget(e kv.Event) {
	versions, _ := s.keys.Get(e.Key)
	i := 0
	for versions[i].revision < e.Revision {
		i++
	}
	if e.Value == nil {
		i++
	}
	if i == len(versions) {
		s.keys.Delete(e.Key)
		return
	}
	clear(versions[:i])
	if versions = versions[i:]; len(versions) < fewVersions {
		// A copy, so that the memory around them is given back.
		versions = append([]version(nil), versions...)
	}
	s.keys.Set(e.Key, versions)
}
