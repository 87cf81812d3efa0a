package rbac

import (
	"context"
	"errors"
	"sort"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Timeline is a State that moves in time: it does and undoes the changes of roles and bindings. One goroutine uses
// it. Reading a State for each of many revisions costs far more.
type Timeline struct {
	State
	past      *Past
	historian kv.Historian
	prefixes  [kinds]string

	changes []kv.Logged // of roles and bindings up to a revision, oldest first
	until   int64
	done    int // the number of changes that State has
}

// Timeline returns a Timeline that begins at a revision. It can go back to after, or to the oldest kept state for 0.
func (p *Past) Timeline(ctx context.Context, h kv.Historian, after, revision int64) (*Timeline, error) {
	t := &Timeline{past: p, historian: h, prefixes: prefixes(p.set), until: after}
	if err := t.read(ctx); err != nil {
		return nil, err
	}
	s, err := ReadState(ctx, p.backend, p.set, revision)
	if err != nil {
		return nil, err
	}
	t.State, t.done = *s, t.before(revision)
	return t, nil
}

// before returns the number of changes up to a revision.
func (t *Timeline) before(revision int64) int {
	return sort.Search(len(t.changes), func(i int) bool { return t.changes[i].Revision > revision })
}

// read adds the changes since the last one.
func (t *Timeline) read(ctx context.Context) error {
	newest, err := t.past.backend.Revision(ctx)
	if err != nil {
		return err
	}
	known := len(t.changes)
	for _, prefix := range t.prefixes {
		for p, err := range t.historian.Changes(ctx, prefix, t.until) {
			if err != nil {
				return err
			}
			if p.Revision <= newest {
				t.changes = append(t.changes, kv.Logged{Key: p.Key, Revision: p.Revision})
			}
		}
	}
	added := t.changes[known:]
	sort.SliceStable(added, func(i, j int) bool { return added[i].Revision < added[j].Revision })
	t.until = newest
	return nil
}

// Move brings the State to a revision, and reports whether roles or bindings have changed between the two.
func (t *Timeline) Move(ctx context.Context, revision int64) (moved bool, err error) {
	if revision > t.until {
		if err := t.read(ctx); err != nil {
			return false, err
		}
	}
	for done := t.before(revision); t.done != done; moved = true {
		if t.done < done {
			err = t.do(ctx, &t.changes[t.done], func(e *kv.Event) { t.set(e.Key, e.Value, e.Revision, e.Prev, e.PrevRevision) })
			t.done++
		} else {
			t.done--
			err = t.do(ctx, &t.changes[t.done], func(e *kv.Event) { t.set(e.Key, e.Prev, e.PrevRevision, e.Value, e.Revision) })
		}
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// do calls a function with a change, unless it was forgotten.
func (t *Timeline) do(ctx context.Context, change *kv.Logged, then func(*kv.Event)) error {
	p, err := t.historian.Change(ctx, change.Key, change.Revision)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err == nil {
		then(&p.Event)
	}
	return err
}

// set replaces the value of a key, or removes the other value if there is none.
func (t *Timeline) set(key string, value []byte, revision int64, other []byte, otherRevision int64) {
	for kind, prefix := range t.prefixes {
		switch {
		case !strings.HasPrefix(key, prefix):
		case value != nil:
			t.index.set(kind, watchcache.NewObject(key, value, revision))
		case other != nil:
			t.index.remove(kind, watchcache.NewObject(key, other, otherRevision))
		}
	}
}
