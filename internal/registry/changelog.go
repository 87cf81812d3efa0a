package registry

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// A LoggedChange is a change in the log of the history, without its states.
type LoggedChange struct {
	kv.Logged
	Definition *resource.Definition // nil if the key is that of no object of the kinds
	Namespace  string               // of the object
	Name       string
}

// Log yields the changes of all keys after a revision up to another one, the newest first. The kinds are those of
// a set. It decodes no object. A time that is not kept is an error, see kv.Historian.
func (r *Registry) Log(ctx context.Context, set *resource.Set, after, until int64) iter.Seq2[LoggedChange, error] {
	return func(yield func(LoggedChange, error) bool) {
		if r.historian == nil {
			yield(LoggedChange{}, NoHistory())
			return
		}
		kinds := storedKinds(set)
		for l, err := range r.historian.Log(ctx, after, until) {
			if err != nil {
				yield(LoggedChange{}, pastError(err))
				return
			}
			c := LoggedChange{Logged: l, Definition: kindOf(kinds, l.Key)}
			if c.Definition != nil {
				c.Namespace, c.Name = c.Definition.Split(l.Key)
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Change returns a change of the log with its states. If it was forgotten, ok is false.
func (r *Registry) Change(ctx context.Context, l kv.Logged) (c PastChange, ok bool, err error) {
	past, err := r.historian.Change(ctx, l.Key, l.Revision)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return PastChange{}, false, nil
	case err != nil:
		return PastChange{}, false, pastError(err)
	}
	return changeOf(past), true, nil
}

// Span returns the newest revision of the store, and that of the state at a time; the zero time is now.
func (r *Registry) Span(ctx context.Context, until time.Time) (newest, at int64, err error) {
	if r.historian == nil {
		return 0, 0, NoHistory()
	}
	if newest, err = r.Revision(ctx); err != nil || until.IsZero() {
		return newest, newest, err
	}
	at, err = r.revisionAt(ctx, until)
	return newest, min(at, newest), err
}

// storedKinds returns the kinds of a set by the prefixes of the keys of their objects.
func storedKinds(set *resource.Set) map[string]*resource.Definition {
	kinds := map[string]*resource.Definition{}
	for d := range set.All() {
		if elsewhere := !d.StoredAs.Empty() && d.StoredAs.Group != d.Group; d.Stored() && !elsewhere {
			kinds[d.StoragePrefix] = d
		}
	}
	return kinds
}
