package boltkv

import (
	"context"
	"errors"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/kv"
)

// Revisions swept in a transaction with a group of writes, besides two for each write; and in one
// without writes. Sweeping is faster than writing, so it always finishes.
const (
	sweepAside = 64
	sweepAlone = 256
)

// A sweep is the removal of a value that one write replaced.
type sweep struct {
	key      string
	revision int64   // of the write
	records  []int64 // to be deleted
}

// Compact implements kv.Backend. It returns once the new oldest revision is on disk. The committer
// sweeps later, and continues after a restart.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	oldest, newest, closed := s.state.oldest, s.state.newest, s.closed
	s.mu.RUnlock()
	switch {
	case closed:
		return kv.ErrClosed
	case revision > newest:
		return &kv.FutureError{Asked: revision, Newest: newest}
	case revision <= oldest:
		return nil
	}
	if revision = s.kept.Compact(revision); revision <= oldest {
		return nil
	}
	r, ok := s.queue.addCompact(revision)
	if !ok {
		return kv.ErrClosed
	}
	<-r.done
	return r.err
}

// Keep implements kv.Keeper.
func (s *Store) Keep(revision int64) (release func(), err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	return s.kept.Keep(revision, s.state.oldest, s.state.newest)
}

// sweepAlone sweeps in a transaction of its own, when no write waits.
func (s *Store) sweepAlone() error {
	t := transaction{Store: s, state: s.state, frees: true}
	budget := sweepAlone
	if s.space.full {
		budget = sweepAlone / 16
	}
	err := s.update(func(tx *bolt.Tx) error {
		if err := t.sweep(tx.Bucket(recordsBucket), budget); err != nil {
			return err
		}
		return t.write(tx)
	})
	if errors.Is(err, kv.ErrFull) {
		// The next write or compaction wakes it up.
		s.log.Warn("storage is too full to free space in it", "file", s.space.file.Name(), "error", err)
		s.paused = true
		return nil
	}
	if err == nil {
		s.publish(&t)
	}
	return err
}

// sweep processes the next revisions that no reader can ask for. The value that such a write replaced
// is unreachable, and so is a deletion itself. So the log of writes suffices to find all removable
// data, and a restart needs only the position of the sweep.
func (t *transaction) sweep(records *bolt.Bucket, budget int) error {
	// Not t.state.oldest: readers may still use older revisions until it is published.
	end := min(t.Store.state.oldest, t.state.swept+int64(budget))
	for t.state.swept < end {
		revision := t.state.swept + 1
		stored := records.Get(recordKey(revision))
		r, err := t.parse(revision, stored)
		if err != nil {
			return err
		}
		t.read += int64(len(stored))
		sw := sweep{key: string(r.key), revision: revision}
		if r.prev != kv.Absent {
			prev := records.Get(recordKey(r.prev))
			if _, err := t.parse(r.prev, prev); err != nil {
				return err
			}
			t.read += int64(len(prev))
			sw.records = append(sw.records, r.prev)
			t.state.removed(storedSum(prev))
		}
		if r.deleted {
			sw.records = append(sw.records, revision)
			t.state.removed(storedSum(stored))
		}
		t.swept = append(t.swept, sw)
		t.state.swept = revision
	}
	return nil
}
