package boltkv

import (
	"context"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/kv"
)

// sweepAtOnce is the number of revisions swept in a transaction, besides two for each write in it. So sweeping always
// finishes.
const sweepAtOnce = 256

// A sweep is the removal of a value that one write replaced.
type sweep struct {
	key      string
	revision int64   // of the write
	records  []int64 // to be deleted
}

// Compact implements kv.Backend. It returns once the new oldest revision is on disk. The settler
// sweeps later, and continues after a restart.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	oldest, newest, closed := s.state.oldest, s.newest, s.closed
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
	return s.settler.compact(revision)
}

// Keep implements kv.Keeper.
func (s *Store) Keep(revision int64) (release func(), err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	return s.kept.Keep(revision, s.state.oldest, s.newest)
}

// sweep processes the next revisions that no reader can ask for. The value that such a write replaced
// is unreachable, and so is a deletion itself. So the log of writes suffices to find all removable
// data, and a restart needs only the position of the sweep.
func (f *filing) sweep(records *bolt.Bucket) error {
	// Not f.oldest: readers may still use older revisions until it is published.
	end := min(f.state.oldest, f.state.swept+int64(f.budget))
	for f.state.swept < end {
		revision := f.state.swept + 1
		stored := records.Get(recordKey(revision))
		r, err := f.parse(revision, stored)
		if err != nil {
			return err
		}
		f.read += int64(len(stored))
		sw := sweep{key: string(r.key), revision: revision}
		if r.prev != kv.Absent {
			prev := records.Get(recordKey(r.prev))
			if _, err := f.parse(r.prev, prev); err != nil {
				return err
			}
			f.read += int64(len(prev))
			sw.records = append(sw.records, r.prev)
			f.state.removed(storedSum(prev))
		}
		if r.deleted {
			sw.records = append(sw.records, revision)
			f.state.removed(storedSum(stored))
		}
		f.swept = append(f.swept, sw)
		f.state.swept = revision
	}
	return nil
}
