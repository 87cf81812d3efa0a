package kv

import (
	"context"
	"iter"
	"strings"
)

// BatchEvents is the maximum number of events that one step of WatchLog inspects.
const BatchEvents = 1024

// Resolve returns the revision of a state for Latest, or the revision itself if the state is kept.
func Resolve(revision, oldest, newest int64) (int64, error) {
	switch {
	case revision == Latest:
		return newest, nil
	case revision < oldest:
		return 0, &CompactedError{Asked: revision, Oldest: oldest}
	case revision > newest:
		return 0, &FutureError{Asked: revision, Newest: newest}
	}
	return revision, nil
}

// WatchLog is the Watch of a backend that has its log at hand. A watch is only a revision, so a slow consumer holds no memory
// and blocks no writer. since returns the next events after a revision, and a channel that is closed once
// there may be more.
func WatchLog(ctx context.Context, after int64, since func(after int64) (Batch, <-chan struct{}, error)) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		seen, started := after, false
		for {
			if err := ctx.Err(); err != nil {
				yield(Batch{}, err)
				return
			}
			batch, changed, err := since(seen)
			if err != nil {
				yield(Batch{}, err)
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

// Select returns the first events with a prefix. events are those after a revision, one for each revision.
func Select(events []Event, prefix string, after int64) Batch {
	events = events[:min(len(events), BatchEvents)]
	batch := Batch{Revision: after + int64(len(events))}
	for _, e := range events {
		if strings.HasPrefix(e.Key, prefix) {
			batch.Events = append(batch.Events, e)
		}
	}
	return batch
}
