package history

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

// Limits of a batch of events from the file.
const (
	maxReplay      = 512
	maxReplayBytes = 2 << 20
)

// Watch implements kv.Backend. It reads old events from the file, and the others from the backend.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		if err := s.check(after); err != nil {
			yield(kv.Batch{}, err)
			return
		}
		matches := func(key string) bool { return strings.HasPrefix(key, prefix) }
		for begun := false; ; begun = true {
			old := false
			for batch, err := range s.below.Watch(ctx, prefix, after) {
				if old = compacted(err); old {
					break
				}
				if err == nil {
					if begun && batch.Revision == after { // the progress of a watch that goes on
						continue
					}
					after = batch.Revision
					for i := range batch.Events {
						_, batch.Events[i].Note = noted(batch.Events[i].Note)
					}
				}
				if !yield(batch, err) || err != nil {
					return
				}
			}
			if !old {
				return
			}
			batch, err := s.replay(ctx, matches, after)
			if err != nil {
				yield(kv.Batch{}, err)
				return
			}
			after = batch.Revision
			if !yield(batch.plain(), nil) {
				return
			}
		}
	}
}

// A portion is events from the file, and the revision up to which there are no others.
type portion struct {
	Events   []kv.Past
	Revision int64
	last     bool // there are no others in the file
}

func (p *portion) plain() kv.Batch {
	b := kv.Batch{Revision: p.Revision}
	for _, e := range p.Events {
		b.Events = append(b.Events, e.Event)
	}
	return b
}

// replay returns the next events of matching keys after a revision. They are in the file.
func (s *Store) replay(ctx context.Context, matches func(key string) bool, after int64) (p portion, err error) {
	if err := s.check(after); err != nil {
		return portion{}, err
	}
	err = s.file.view(ctx, func(r *reading) error {
		p = portion{Revision: r.state.archived, last: true}
		if after < r.state.oldest {
			return &kv.CompactedError{Asked: after, Oldest: r.state.oldest}
		}
		size, inspected, last := 0, 0, after
		for e, err := range r.entries(after) {
			if err != nil {
				return err
			}
			if e.revision > last && (len(p.Events) >= maxReplay || size >= maxReplayBytes || inspected >= 64*maxReplay) {
				p.Revision, p.last = last, false
				return nil
			}
			last = e.revision
			inspected++
			name := string(r.names.Get(number(e.id)))
			if name == "" || !matches(name) { // a name that is missing was forgotten
				continue
			}
			event, err := r.event(name, e)
			if err != nil {
				return err
			}
			if event != nil {
				p.Events = append(p.Events, *event)
				size += len(event.Value) + len(event.Prev)
			}
		}
		return ctx.Err()
	})
	return p, err
}

// event returns the event of an entry, nil if it was forgotten.
func (r *reading) event(key string, e entry) (*kv.Past, error) {
	id := number(e.id)
	found, err := r.runAt(key, id, e.revision)
	if err != nil || found == nil {
		return nil, err
	}
	i := found.at(e.revision)
	if found.versions[i].revision != e.revision {
		return nil, nil
	}
	before, previous := found, i+1
	if previous == len(found.versions) {
		if before, err = r.runAt(key, id, e.revision-1); err != nil {
			return nil, err
		}
		previous = 0
	}
	return r.between(key, before, previous, found, i)
}

// between returns the change from a version, of a run that may be nil, to the next one.
func (r *reading) between(key string, before *run, previous int, found *run, i int) (*kv.Past, error) {
	v := &found.versions[i]
	value, err := found.value(i)
	if err != nil {
		return nil, r.damage(v.revision, "a run of the history makes no sense")
	}
	p := &kv.Past{Event: kv.Event{Key: key, Revision: v.revision, Note: v.note}, Time: v.when()}
	p.Value = bytes.Clone(value)
	if before != nil && before.versions[previous].kind != deleted {
		if value, err = before.value(previous); err != nil {
			return nil, r.damage(before.versions[previous].revision, "a run of the history makes no sense")
		}
		p.Prev, p.PrevRevision = bytes.Clone(value), before.versions[previous].revision
	}
	return p, nil
}
