package watchcache

import (
	"context"
	"errors"
	"sync/atomic"
	"weak"
)

const (
	// maxBatch limits the events that Next returns.
	maxBatch = 256
	// maxBatchBytes limits their size, except for the last one. A watcher that is stuck with a batch
	// keeps events in memory that the history has dropped.
	maxBatchBytes = 128 << 10
)

// Batch is a sequence of events, at least one, in order of their revisions. Every event of the watcher
// up to Revision is in this batch or an earlier one.
type Batch struct {
	Events   []*Event
	Revision int64

	memos *memos // nil if no other watcher has the batch
}

// Memo is Object.Memo for results derived from all events of the batch. Watchers of the same keys at
// the same position get the same batch.
func (b *Batch) Memo(key any, m Validity, compute func() ([]byte, error)) ([]byte, error) {
	if b.memos == nil {
		return compute()
	}
	value, _, err := b.memos.get(key, m, compute)
	return value, err
}

// A portion is a batch that other watchers at the same position may share.
type portion struct {
	Batch
	kept memos
}

// Watcher delivers the events of keys with a prefix, each once, in order, without gaps. It is a
// position: it has no events and no goroutine, delays no writer, and may be closed at any time. Events
// beyond the history of the cache are read from the backend.
//
// The caller must close it. Its methods are not called concurrently, except Close.
type Watcher struct {
	cache  *Cache
	state  *state
	prefix string
	seen   int64 // every event up to here was delivered
	closed atomic.Bool
}

var errClosed = errors.New("the watcher is closed")

// Close ends the watcher: later calls of Next fail. It does not interrupt a waiting Next; its context
// does.
func (w *Watcher) Close() {
	if !w.closed.Swap(true) {
		w.cache.watchers.Add(-1)
	}
}

// Next returns the next events as soon as there are some. If ctx ends first, the watcher continues
// with the next call.
// Errors: *kv.CompactedError when the backend has compacted the next event; ErrGone, ErrStopped, those
// of the backend, the context's.
func (w *Watcher) Next(ctx context.Context) (Batch, error) {
	for {
		if w.closed.Load() {
			return Batch{}, errClosed
		}
		if err := w.cache.acquire(ctx, w.state); err == ErrGone {
			return w.last(ctx)
		} else if err != nil {
			return Batch{}, err
		}
		if floor := w.state.history.floor; w.seen < floor {
			w.state.mu.Unlock()
			events, err := w.past(ctx, floor)
			if err != nil {
				return Batch{}, err
			}
			if len(events) > 0 {
				return Batch{Events: events, Revision: w.seen}, nil
			}
			continue
		}
		if p := w.recent(); p != nil {
			w.state.mu.Unlock()
			return p.Batch, nil
		}
		group := w.state.groups.join(w.prefix)
		w.state.mu.Unlock()
		if err := w.wait(ctx, group); err != nil {
			return Batch{}, err
		}
	}
}

// last returns the remaining events from before the resource was forgotten, and then ErrGone. The
// state no longer changes.
func (w *Watcher) last(ctx context.Context) (Batch, error) {
	w.state.mu.Lock()
	h := w.state.history
	w.state.mu.Unlock()
	var events []*Event
	if w.seen < h.floor {
		var err error
		if events, err = w.past(ctx, h.floor); err != nil {
			return Batch{}, err
		}
	}
	if len(events) == 0 {
		events, _ = gather(h.after(w.seen), w.prefix)
	}
	if len(events) == 0 {
		return Batch{}, ErrGone
	}
	w.seen = events[len(events)-1].Revision
	return Batch{Events: events, Revision: w.seen}, nil
}

// Progress returns the revision of the store up to which Next has delivered all events. A watcher
// without events can resume from it.
func (w *Watcher) Progress() int64 {
	s := w.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree == nil || w.seen < s.history.floor {
		return w.seen
	}
	for _, e := range s.history.after(w.seen) {
		if within(w.prefix, e.Key()) {
			return w.seen
		}
		w.seen = e.Revision
	}
	w.seen = max(w.seen, s.view(w.cache))
	return w.seen
}

// recent returns the next events from the history of the resource, nil if there
// are none, and moves the watcher behind them. It needs the lock of the state.
func (w *Watcher) recent() *portion {
	s := w.state
	after := s.history.after(w.seen)
	for len(after) > 0 && !within(w.prefix, after[0].Key()) {
		after = after[1:]
	}
	if len(after) == 0 {
		w.seen = max(w.seen, s.view(w.cache))
		return nil
	}
	p := s.portions[w.prefix].Value()
	if p == nil || p.Events[0] != after[0] {
		p = &portion{}
		p.memos = &p.kept
		all := false
		if p.Events, all = gather(after, w.prefix); all {
			p.Revision = s.view(w.cache)
		} else {
			p.Revision = p.Events[len(p.Events)-1].Revision
		}
		if s.portions == nil {
			s.portions = map[string]weak.Pointer[portion]{}
		}
		s.portions[w.prefix] = weak.Make(p)
	}
	w.seen = p.Revision
	return p
}

// gather returns the events with the prefix, up to the limits of a batch, and reports whether these
// are all. The first event has the prefix.
func gather(events []*Event, prefix string) (found []*Event, all bool) {
	found = make([]*Event, 0, min(len(events), maxBatch))
	size := 0
	for _, e := range events {
		if !within(prefix, e.Key()) {
			continue
		}
		if len(found) == maxBatch || size > maxBatchBytes {
			return found, false
		}
		found = append(found, e)
		size += e.held()
	}
	return found, true
}

// past returns the next events from the history of the backend, none above the
// floor, from where on the cache's own are shared. It moves the watcher behind
// them.
func (w *Watcher) past(ctx context.Context, floor int64) ([]*Event, error) {
	for batch, err := range w.cache.backend.Watch(ctx, w.prefix, w.seen) {
		if err != nil {
			return nil, err
		}
		var events []*Event
		for _, e := range batch.Events {
			if e.Revision <= floor && within(w.prefix, e.Key) {
				events = append(events, pastEvent(e))
			}
		}
		w.seen = max(w.seen, min(batch.Revision, floor))
		if len(events) > 0 || w.seen == floor {
			return events, nil
		}
	}
	return nil, errors.New("the history of the store ended early")
}

// wait waits until there may be events for the group.
func (w *Watcher) wait(ctx context.Context, g *group) error {
	var err error
	select {
	case <-g.woken:
	case <-ctx.Done():
		err = ctx.Err()
	case <-w.cache.stopped:
		err = w.cache.why
	}
	if err != nil {
		s := w.state
		s.mu.Lock()
		quiet := s.groups.leave(w.prefix, g)
		if quiet {
			w.seen = max(w.seen, s.view(w.cache))
		}
		s.mu.Unlock()
		if quiet {
			return err
		}
		// The feed has taken the group and is about to wake it.
		<-g.woken
	}
	w.seen = max(w.seen, g.seen)
	return err
}
