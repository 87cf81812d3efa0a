package memkv

import (
	"context"

	"github.com/anykind/anykind/internal/store/kv"
)

// sweepLimit limits the events that a compaction drops while it holds the lock.
const sweepLimit = 512

// fewVersions is a number of versions that is cheap to copy. The space of compacted versions of a key
// with more, one that is written all the time, is reclaimed when the slice is full.
const fewVersions = 8

// Compact implements kv.Backend. Readers see the new oldest revision at once. Unreachable data is
// dropped in small steps, between which other calls run.
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
	s.oldest = max(s.oldest, s.kept.Compact(revision))
	s.mu.Unlock()

	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	for s.sweep() {
	}
	return nil
}

// sweep drops the first events at or below the oldest kept revision, with the versions that they
// replaced, and reports whether there may be more.
func (s *Store) sweep() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(int(s.oldest+1-s.logStart), sweepLimit, len(s.log))
	s.drop(n)
	return n == sweepLimit
}

// shed compacts the excess of the history. It needs mu, and drops about as much as was added.
func (s *Store) shed() {
	for s.past > s.options.MaxPastBytes && s.kept.Compact(s.logStart) == s.logStart {
		s.oldest = max(s.oldest, s.logStart)
		s.drop(1)
	}
}

// drop drops the first n events. None of them is after the oldest kept revision.
func (s *Store) drop(n int) {
	for _, e := range s.log[:n] {
		s.forget(e)
		s.past -= pastBytes(e)
	}
	clear(s.log[:n])
	s.log = s.log[n:]
	s.logStart += int64(n)
}

// pastBytes returns about the number of bytes that an event alone keeps in memory.
func pastBytes(e kv.Event) int64 {
	const fixed = 200
	return fixed + int64(len(e.Prev))
}

// forget drops the versions of the key of e that no state from e on contains: the earlier ones and, if
// e is a deletion, its own, unless it hides a value.
func (s *Store) forget(e kv.Event) {
	k, _ := s.keys.Get(e.Key)
	i := 0
	for k.versions[i].revision < e.Revision {
		i++
	}
	if e.Value == nil && !k.hides {
		i++
	}
	if i == len(k.versions) {
		s.keys.Delete(e.Key)
		return
	}
	clear(k.versions[:i])
	if k.versions = k.versions[i:]; len(k.versions) < fewVersions {
		// A copy, so that the memory around them is freed.
		k.versions = append([]version(nil), k.versions...)
	}
}
