package memkv

import (
	"context"
	"iter"

	"github.com/anykind/anykind/internal/store/kv"
)

// Watch implements kv.Backend.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return kv.WatchLog(ctx, after, func(after int64) (kv.Batch, <-chan struct{}, error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		after, err := s.resolve(after)
		if err != nil {
			return kv.Batch{}, nil, err
		}
		return kv.Select(s.log[after+1-s.logStart:], prefix, after), s.changed, nil
	})
}
