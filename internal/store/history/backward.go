package history

import (
	"context"
	"iter"
	"sort"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// Limits of a transaction that reads the log, so that a slow caller does not hold its pages.
const (
	maxLogged = 16 * maxBlock // changes
	maxNames  = 16 << 10      // keys in memory, of all transactions of a call
)

// Log implements kv.Historian. It reads blocks of the log from the end, and the name of each key once.
func (s *Store) Log(ctx context.Context, after, until int64) iter.Seq2[kv.Logged, error] {
	return func(yield func(kv.Logged, error) bool) {
		if err := s.backward(ctx, after, until, func(l kv.Logged) bool { return yield(l, nil) }); err != nil {
			yield(kv.Logged{}, err)
		}
	}
}

func (s *Store) backward(ctx context.Context, after, until int64, yield func(kv.Logged) bool) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	now := s.now()
	for _, revision := range []int64{after, until} {
		if revision == 0 {
			continue
		}
		if err := s.check(revision); err != nil {
			return err
		}
	}
	if until == 0 {
		until = now.seen
	}
	// Events that are written to the file after this point are not read from there.
	for i := len(now.pending) - 1; i >= 0 && now.pending[i].Revision > after; i-- {
		if e := &now.pending[i]; e.Revision <= until && !yield(kv.Logged{Key: e.Key, Revision: e.Revision}) {
			return nil
		}
	}
	names := map[int64]string{}
	for until = min(until, now.archived); until > after; {
		changes, next, err := s.logged(ctx, names, after, until)
		if err != nil {
			return err
		}
		for _, l := range changes {
			if !yield(l) {
				return nil
			}
		}
		until = next
	}
	return nil
}

// logged returns the last changes of the file after a revision up to another one, the newest first, and the revision up
// to which the others are. names has known names of keys, by their ids.
func (s *Store) logged(ctx context.Context, names map[int64]string, after, until int64) (changes []kv.Logged, next int64, err error) {
	err = s.file.view(ctx, func(r *reading) error {
		oldest := r.state.oldest
		if after != 0 && after < oldest {
			return &kv.CompactedError{Asked: after, Oldest: oldest}
		}
		next = 0
		c := r.log.Cursor()
		for k, v := seekBlock(c, until); k != nil; k, v = c.Prev() {
			entries, err := r.block(k, v)
			if err != nil {
				return err
			}
			for i := len(entries) - 1; i >= 0; i-- {
				e := &entries[i]
				if e.revision <= max(after, oldest) {
					return nil
				}
				if e.revision > until {
					continue
				}
				if name := r.name(names, e.id); name != "" {
					changes = append(changes, kv.Logged{Key: name, Revision: e.revision})
				}
			}
			if len(changes) >= maxLogged {
				next = entries[0].revision - 1
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return changes, next, err
}

// name returns the key with an id, "" if it was forgotten.
func (r *reading) name(known map[int64]string, id int64) string {
	name, ok := known[id]
	if !ok {
		if len(known) >= maxNames {
			clear(known)
		}
		name = string(r.names.Get(number(id)))
		known[id] = name
	}
	return name
}

// Change implements kv.Historian.
func (s *Store) Change(ctx context.Context, key string, revision int64) (found kv.Past, err error) {
	if err := s.wait(ctx); err != nil {
		return kv.Past{}, err
	}
	pending := s.now().pending
	for i := sort.Search(len(pending), func(i int) bool { return pending[i].Revision >= revision }); i < len(pending); i++ {
		e := &pending[i]
		if e.Revision > revision {
			break
		}
		if e.Key == key {
			return kv.Past{Event: e.Event, Time: time.UnixMilli(e.time).UTC()}, nil
		}
	}
	err = s.file.view(ctx, func(r *reading) error {
		if revision <= r.state.oldest {
			return &kv.CompactedError{Asked: revision - 1, Oldest: r.state.oldest}
		}
		id := r.keys.Get([]byte(key))
		if id == nil {
			return kv.ErrNotFound
		}
		p, err := r.event(key, entry{revision: revision, id: firstOf(id)})
		if err != nil {
			return err
		}
		if p == nil {
			return kv.ErrNotFound
		}
		found = *p
		return nil
	})
	return found, err
}
