package memkv

import (
	"context"
	"iter"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

// batchLimit limits the events that a watch visits while it holds the lock.
const batchLimit = 1024

// Watch implements kv.Backend. A watch is only a position in the log, so a slow consumer holds no
// memory.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		seen, started := after, false
		for {
			if err := ctx.Err(); err != nil {
				yield(kv.Batch{}, err)
				return
			}
			batch, changed, err := s.eventsAfter(prefix, seen)
			if err != nil {
				yield(kv.Batch{}, err)
				return
			}
			if started && batch.Revision == seen {
				select {
				case <-changed:
				case <-ctx.Done():
				}
				continue
			}
			seen, started = batch.Revision, true
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// eventsAfter returns the next events after a revision, and a channel that is closed once there may be more.
func (s *Store) eventsAfter(prefix string, after int64) (kv.Batch, <-chan struct{}, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	after, err := s.resolve(after)
	if err != nil {
		return kv.Batch{}, nil, err
	}
	events := s.log[after+1-s.logStart:]
	events = events[:min(len(events), batchLimit)]
	batch := kv.Batch{Revision: after + int64(len(events))}
	for _, e := range events {
		if strings.HasPrefix(e.Key, prefix) {
			batch.Events = append(batch.Events, e)
		}
	}
	return batch, s.changed, nil
}
