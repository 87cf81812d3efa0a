package memkv

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/anykind/anykind/internal/store/kv"
)

// Differences implements kv.Differ. A store over nothing differs in all of its keys.
func (s *Store) Differences(ctx context.Context) iter.Seq2[kv.Event, error] {
	return func(yield func(kv.Event, error) bool) {
		events, err := s.latest()
		if err != nil {
			yield(kv.Event{}, err)
			return
		}
		for _, e := range events {
			if over := s.options.Over; over != nil {
				before, err := over.Get(ctx, e.Key)
				if err != nil && !errors.Is(err, kv.ErrNotFound) {
					yield(kv.Event{}, err)
					return
				}
				e.Prev, e.PrevRevision = before.Value, before.Revision
			}
			same := e.Value == nil && e.Prev == nil || e.Value != nil && e.Prev != nil && bytes.Equal(e.Value, e.Prev)
			if !same && !yield(e, nil) {
				return
			}
		}
	}
}

// latest returns the present version of each key that was written, without the one before.
func (s *Store) latest() ([]kv.Event, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	events := make([]kv.Event, 0, s.keys.Len())
	s.keys.Scan(func(key string, k *written) bool {
		last := k.versions[len(k.versions)-1]
		e := kv.Event{Key: key, Revision: last.revision, Value: last.value}
		if at := last.revision - s.logStart; at >= 0 {
			e.Note = s.log[at].Note
		}
		events = append(events, e)
		return true
	})
	return events, nil
}
