package boltkv

import (
	"context"

	"github.com/anykind/anykind/internal/store/kv"
)

var _ kv.Loader = (*Store)(nil)

// Load implements kv.Loader.
func (s *Store) Load(ctx context.Context, key string, revision int64) (value []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return nil, kv.ErrClosed
	}
	// A value that no kept state has may be in the index until its removal is published.
	if oldest, newest := s.state.oldest, s.newest; revision > newest || s.index.at(key, max(revision, oldest)) != revision {
		s.mu.RUnlock()
		if revision > newest {
			return nil, &kv.FutureError{Asked: revision, Newest: newest}
		}
		return nil, &kv.CompactedError{Asked: revision, Oldest: oldest}
	}
	return s.written(revision)
}
