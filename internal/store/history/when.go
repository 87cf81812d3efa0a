package history

import (
	"bytes"
	"context"
	"iter"
	"sort"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// At implements kv.Historian.
func (s *Store) At(ctx context.Context, t time.Time) (revision int64, err error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	at := t.UnixMilli()
	s.mu.RLock()
	waiting := sort.Search(len(s.pending), func(i int) bool { return s.pending[i].time > at })
	if waiting > 0 {
		revision = s.pending[waiting-1].Revision
	}
	s.mu.RUnlock()
	if waiting > 0 {
		return revision, nil
	}
	err = s.file.view(ctx, func(r *reading) error {
		if at < r.state.began {
			return &kv.TooEarlyError{Asked: t, Oldest: time.UnixMilli(r.state.began)}
		}
		revision, err = r.at(at)
		return err
	})
	return revision, err
}

// at returns the revision of the last event until a time. It looks for its block by halves.
func (r *reading) at(t int64) (int64, error) {
	c := r.log.Cursor()
	low, high := r.state.oldest, r.state.archived // the event is at low or later, and at high or before
	found := r.state.oldest
	for low <= high {
		middle := low + (high-low)/2
		k, v := seekBlock(c, middle)
		if k == nil {
			break
		}
		entries, err := r.block(k, v)
		if err != nil {
			return 0, err
		}
		i := sort.Search(len(entries), func(i int) bool { return entries[i].time > t })
		if i == 0 {
			high = min(middle, entries[0].revision) - 1
			continue
		}
		found = max(found, entries[i-1].revision)
		if i < len(entries) {
			break
		}
		low = max(middle, found) + 1
	}
	return found, nil
}

// timeOf returns the time of the last event at or before a kept revision.
func (r *reading) timeOf(revision int64) (int64, error) {
	k, v := seekBlock(r.log.Cursor(), revision)
	if k == nil {
		return r.state.began, nil
	}
	entries, err := r.block(k, v)
	if err != nil {
		return 0, err
	}
	i := sort.Search(len(entries), func(i int) bool { return entries[i].revision > revision })
	if i == 0 {
		return r.state.began, nil
	}
	return entries[i-1].time, nil
}

// Changes implements kv.Historian.
func (s *Store) Changes(ctx context.Context, keys string, after int64) iter.Seq2[kv.Past, error] {
	return func(yield func(kv.Past, error) bool) {
		if err := s.changes(ctx, keys, after, func(p kv.Past) bool { return yield(p, nil) }); err != nil {
			yield(kv.Past{}, err)
		}
	}
}

func (s *Store) changes(ctx context.Context, keys string, after int64, yield func(kv.Past) bool) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	now := s.now()
	if after == 0 {
		after = now.oldest
	}
	if err := s.check(after); err != nil {
		return err
	}
	matches := func(key string) bool { return within(keys, key) }
	read := func(after int64) (portion, error) { return s.replay(ctx, matches, after) }
	if key := keys; key != "" && key[len(key)-1] != '/' {
		read = func(after int64) (portion, error) { return s.ofKey(ctx, key, after) }
	}
	for last := false; !last; {
		p, err := read(after)
		if err != nil {
			return err
		}
		for _, e := range p.Events {
			if e.Revision > now.seen || !yield(e) {
				return nil
			}
		}
		after, last = max(after, p.Revision), p.last
	}
	// Events that were written to the file since they were read from pending are not after it.
	for _, e := range now.pending {
		if e.Revision > after && matches(e.Key) && !yield(kv.Past{Event: e.Event, Time: time.UnixMilli(e.time).UTC()}) {
			return nil
		}
	}
	return nil
}

// ofKey returns the next events of a key, by its runs.
func (s *Store) ofKey(ctx context.Context, key string, after int64) (p portion, err error) {
	err = s.file.view(ctx, func(r *reading) error {
		p = portion{Revision: r.state.archived, last: true}
		id := r.keys.Get([]byte(key))
		if id == nil {
			return nil
		}
		before, err := r.runAt(key, id, after)
		if err != nil {
			return err
		}
		previous := 0
		if before != nil {
			previous = before.at(after)
		}
		c := r.runs.Cursor()
		from := after + 1
		if before != nil {
			from = before.oldest()
		}
		size := 0
		for k, v := c.Seek(runKey(id, from)); k != nil && string(k[:8]) == string(id); k, v = c.Next() {
			found, err := r.decode(key, k, v)
			if err != nil {
				return err
			}
			for i := len(found.versions) - 1; i >= 0; i-- {
				one := &found.versions[i]
				if one.revision <= after {
					continue
				}
				if one.kind != first {
					event, err := r.between(key, before, previous, found, i)
					if err != nil {
						return err
					}
					p.Events = append(p.Events, *event)
					size += len(event.Value) + len(event.Prev)
				}
				before, previous = found, i
			}
			if last := found.newest().revision; size > maxReplayBytes && last > after {
				p.Revision, p.last = last, false
				return ctx.Err()
			}
		}
		return nil
	})
	return p, err
}

// Forget implements kv.Historian. The recent states of the backend are dropped.
func (s *Store) Forget(ctx context.Context, key string) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	if err := (settled{s}).Compact(ctx, s.now().seen); err != nil {
		return err
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.file.update(ctx, func(r *reading) error {
		id := bytes.Clone(r.keys.Get([]byte(key)))
		if id == nil {
			return nil
		}
		// The present state of a damaged run is in the backend.
		var present *version
		if last, err := r.lastRun(key, id); err == nil && last != nil {
			present = last.present()
		}
		var drop [][]byte
		c := r.runs.Cursor()
		for k, _ := c.Seek(id); bytes.HasPrefix(k, id); k, _ = c.Next() {
			drop = append(drop, bytes.Clone(k))
		}
		if err := r.remove(id, drop, present == nil); err != nil || present == nil {
			return err
		}
		w := newWriting(r)
		return w.store(&openRun{key: key, id: id, run: run{versions: []version{*present}}})
	})
}
