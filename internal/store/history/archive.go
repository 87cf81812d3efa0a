package history

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// Limits of the events that wait for a transaction.
const (
	batchEvents = 2048
	batchBytes  = 4 << 20
)

// retryAfter is the time after a failure until the next attempt.
const retryAfter = 5 * time.Second

// archive follows the backend and writes its events to the file, until the backend is closed or the context ends.
func (s *Store) archive(ctx context.Context) {
	defer s.see(nil, 0, kv.ErrClosed)
	for {
		err := s.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, kv.ErrClosed) {
			return
		}
		s.log.Error("the history does not go on", "file", s.file.path, "error", err)
		s.see(nil, 0, err)
		if errors.Is(err, kv.ErrFull) && s.drop(ctx) == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.options.retry):
		}
	}
}

func (s *Store) follow(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	for batch, err := range s.below.Watch(ctx, "", s.now().seen) {
		if err != nil {
			return err
		}
		if !s.see(batch.Events, batch.Revision, nil) {
			continue
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// see adds events up to a revision, or the reason for which there are none, and reports whether enough events wait.
func (s *Store) see(events []kv.Event, revision int64, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		at, note := noted(e.Note)
		s.last = max(s.last, at)
		e.Note = note
		s.pending = append(s.pending, event{e, s.last})
		s.size += e.Size()
	}
	s.seen, s.failed = max(s.seen, revision), err
	close(s.changed)
	s.changed = make(chan struct{})
	return len(s.pending) >= s.options.batch || s.size >= batchBytes
}

// wait returns when the archivist has seen all writes that were acknowledged before the call.
func (s *Store) wait(ctx context.Context) error {
	revision, err := s.below.Revision(ctx)
	if err != nil {
		return err
	}
	for {
		s.mu.RLock()
		seen, failed, changed := s.seen, s.failed, s.changed
		s.mu.RUnlock()
		switch {
		case seen >= revision:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// flush writes the events that wait to the file.
func (s *Store) flush(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	now := s.now()
	if now.seen == now.archived {
		return nil
	}
	err := s.file.update(ctx, func(r *reading) error {
		w := newWriting(r)
		w.thin = thinning{every: s.options.Every, recent: s.Recent(), needed: s.kept.Within}
		return w.archive(now.pending, now.seen)
	})
	if boltfile.IsFull(err) {
		err = errors.Join(kv.ErrFull, err)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range now.pending {
		s.size -= now.pending[i].Size()
	}
	s.pending = slices.Clone(s.pending[len(now.pending):])
	s.archived = now.seen
	return nil
}

// A writing adds events to the file.
type writing struct {
	*reading
	packer packer
	open   map[string]*openRun // by key
	order  []*openRun
	thin   thinning
}

// A thinning removes states of keys with an interval that are no longer recent.
type thinning struct {
	every  func(key string) time.Duration // nil for none
	recent int64                          // the oldest recent revision
	needed func(from, before int64) bool  // see run.thin
}

func newWriting(r *reading) *writing { return &writing{reading: r, open: map[string]*openRun{}} }

// An openRun is a run that gets more versions. It may have none.
type openRun struct {
	key string
	id  []byte
	run
}

func (o *openRun) empty() bool { return len(o.versions) == 0 }

// archive adds events, and the fact that there are no others up to a revision.
func (w *writing) archive(events []event, until int64) error {
	for i := range events {
		if err := w.add(&events[i]); err != nil {
			return err
		}
	}
	for _, o := range w.order {
		if err := w.store(o); err != nil {
			return err
		}
	}
	if err := w.logEvents(events); err != nil {
		return err
	}
	if n := len(events); n > 0 {
		last := &events[n-1]
		w.state.key, w.state.sum, w.state.time = []byte(last.Key), sumOf(last.Value), last.time
	}
	w.state.archived = until
	return nil
}

// add adds an event to the run of its key.
func (w *writing) add(e *event) error {
	o, err := w.last(e.Key)
	if err != nil {
		return err
	}
	if e.PrevRevision != kv.Absent && (o.empty() || o.newest().revision != e.PrevRevision) {
		if err = w.version(o, version{revision: e.PrevRevision, kind: first, data: e.Prev}); err != nil {
			return err
		}
	}
	v := version{revision: e.Revision, time: e.time, note: e.Note, data: e.Value}
	if e.Value == nil {
		v.kind = deleted
	}
	return w.version(o, v)
}

// version adds a version to a run. A full run is stored, and another one begins.
func (w *writing) version(o *openRun, v version) error {
	most := maxVersions
	if w.thin.every != nil {
		if interval := w.thin.every(o.key).Milliseconds(); interval > 0 {
			most = maxThinned
			if err := o.thin(interval, w.thin.recent, w.thin.needed); err != nil {
				return w.damage(v.revision, "a run of the history makes no sense")
			}
		}
	}
	if !o.empty() && o.full(most) {
		if err := w.store(o); err != nil {
			return err
		}
		o.run = run{}
	}
	o.run.add(v)
	return nil
}

// last returns the last run of a key, without versions if the key is new or the run is damaged: then another run
// begins.
func (w *writing) last(key string) (*openRun, error) {
	if o := w.open[key]; o != nil {
		return o, nil
	}
	o := &openRun{key: key}
	w.open[key] = o
	w.order = append(w.order, o)
	if id := w.keys.Get([]byte(key)); id != nil {
		o.id = bytes.Clone(id)
		stored, err := w.lastRun(key, id)
		var damage *kv.CorruptError
		if err != nil && !errors.As(err, &damage) {
			return nil, err
		}
		if stored != nil {
			o.versions = slices.Clone(stored.versions) // the cache has the others
		}
		return o, nil
	}
	w.state.ids++
	o.id = number(w.state.ids)
	if err := w.keys.Put([]byte(key), o.id); err != nil {
		return nil, err
	}
	return o, w.names.Put(o.id, []byte(key))
}

// store writes a run.
func (w *writing) store(o *openRun) error {
	if o.empty() {
		return nil
	}
	data, err := w.packer.pack(o.run.encode())
	if err == nil && w.seal != nil {
		data, err = w.seal.Encode(w.ctx, o.key, data)
	}
	if err != nil {
		return err
	}
	k := runKey(o.id, o.oldest())
	return w.runs.Put(k, summed(k, data))
}
