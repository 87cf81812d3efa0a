package rbac

import (
	"context"
	"errors"
	"slices"
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

	// changes are those of roles and bindings after from, up to until, oldest first. State has the first done of them.
	changes     []kv.Logged
	from, until int64
	done        int
}

const (
	// stride is the number of revisions whose changes are read at once.
	stride = 4096
	// farther than leap revisions away, a State is read anew.
	leap = 64 << 10
)

// Timeline returns a Timeline that begins at a revision.
func (p *Past) Timeline(ctx context.Context, h kv.Historian, revision int64) (*Timeline, error) {
	t := &Timeline{past: p, historian: h, prefixes: prefixes(p.set)}
	return t, t.begin(ctx, revision)
}

// begin reads the State of a revision.
func (t *Timeline) begin(ctx context.Context, revision int64) error {
	s, err := ReadState(ctx, t.past.backend, t.past.set, revision)
	if err != nil {
		return err
	}
	t.State, t.changes, t.done, t.from, t.until = *s, nil, 0, revision, revision
	return nil
}

// Move brings the State to a revision, and reports whether it has changed.
func (t *Timeline) Move(ctx context.Context, revision int64) (moved bool, err error) {
	switch {
	case revision < t.from-leap, revision > t.until+leap:
		return true, t.begin(ctx, revision)
	case revision < t.from:
		err = t.back(ctx, revision)
	case revision > t.until:
		err = t.forth(ctx, revision)
	}
	if err != nil {
		return false, err
	}
	for done := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].Revision > revision }); t.done != done; moved = true {
		if t.done < done {
			err = t.do(ctx, t.changes[t.done], false)
			t.done++
		} else {
			t.done--
			err = t.do(ctx, t.changes[t.done], true)
		}
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// back reads the changes before those that are known, at least those after a revision.
func (t *Timeline) back(ctx context.Context, revision int64) error {
	after := max(revision-stride, 1)
	earlier, err := t.log(ctx, after, t.from)
	var compacted *kv.CompactedError
	if errors.As(err, &compacted) && compacted.Oldest <= revision {
		after = compacted.Oldest
		earlier, err = t.log(ctx, after, t.from)
	}
	if err != nil {
		return err
	}
	t.changes, t.from, t.done = slices.Concat(earlier, t.changes), after, t.done+len(earlier)
	return nil
}

// forth reads the changes after those that are known, at least those up to a revision.
func (t *Timeline) forth(ctx context.Context, revision int64) error {
	newest, err := t.past.backend.Revision(ctx)
	if err != nil {
		return err
	}
	until := min(revision+stride, newest)
	later, err := t.log(ctx, t.until, until)
	if err != nil {
		return err
	}
	t.changes, t.until = append(t.changes, later...), until
	return nil
}

// log returns the changes of roles and bindings after a revision, up to another one, oldest first.
func (t *Timeline) log(ctx context.Context, after, until int64) (changes []kv.Logged, err error) {
	for l, err := range t.historian.Log(ctx, after, until) {
		if err != nil {
			return nil, err
		}
		if t.kindOf(l.Key) < kinds {
			changes = append(changes, l)
		}
	}
	slices.Reverse(changes)
	return changes, nil
}

// do does or undoes a change, unless it was forgotten.
func (t *Timeline) do(ctx context.Context, change kv.Logged, undo bool) error {
	e, err := t.historian.Change(ctx, change.Key, change.Revision)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	to, from := kv.Record{Value: e.Value, Revision: e.Revision}, kv.Record{Value: e.Prev, Revision: e.PrevRevision}
	if undo {
		to, from = from, to
	}
	switch kind := t.kindOf(change.Key); {
	case to.Value != nil:
		t.index.set(kind, watchcache.NewObject(change.Key, to.Value, to.Revision))
	case from.Value != nil:
		t.index.remove(kind, watchcache.NewObject(change.Key, from.Value, from.Revision))
	}
	return nil
}

// kindOf returns the kind of the object with a key, or kinds.
func (t *Timeline) kindOf(key string) int {
	for kind, prefix := range t.prefixes {
		if strings.HasPrefix(key, prefix) {
			return kind
		}
	}
	return kinds
}
