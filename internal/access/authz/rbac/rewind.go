package rbac

import (
	"context"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Rewind is a State that goes back in time: its owner undoes the changes of roles and bindings, the newest one
// first. One goroutine uses it. Reading a State for each of many revisions costs far more.
type Rewind struct {
	State
	prefixes [kinds]string
}

// Rewind returns the Rewind of a revision.
func (p *Past) Rewind(ctx context.Context, revision int64) (*Rewind, error) {
	s, err := ReadState(ctx, p.backend, p.set, revision)
	if err != nil {
		return nil, err
	}
	return &Rewind{State: *s, prefixes: prefixes(p.set)}, nil
}

// Decides reports whether the object with a key is a role or a binding.
func (r *Rewind) Decides(key string) bool { return r.kindOf(key) < kinds }

// Undo brings the Rewind to the state before a change of a role or a binding.
func (r *Rewind) Undo(e *kv.Event) {
	kind := r.kindOf(e.Key)
	switch {
	case kind == kinds:
	case e.Prev != nil:
		r.index.set(kind, watchcache.NewObject(e.Key, e.Prev, e.PrevRevision))
	case e.Value != nil:
		r.index.remove(kind, watchcache.NewObject(e.Key, e.Value, e.Revision))
	}
}

// kindOf returns the kind of the object with a key, or kinds.
func (r *Rewind) kindOf(key string) int {
	for kind, prefix := range r.prefixes {
		if strings.HasPrefix(key, prefix) {
			return kind
		}
	}
	return kinds
}
