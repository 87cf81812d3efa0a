package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// NoHistory is the error for a request that needs a history. It names the flag that starts one.
func NoHistory() error {
	return status.BadRequest("this server keeps no history: start it with --history=30d")
}

// Recent returns the oldest revision of the recent states, or 0 without a history.
func (r *Registry) Recent() int64 {
	if r.historian == nil {
		return 0
	}
	return r.historian.Recent()
}

// checkPast rejects a read of the history of a target that has none.
func (r *Registry) checkPast(target *Target) error {
	if r.historian == nil {
		return NoHistory()
	}
	return target.checkStored()
}

// Forget takes the earlier states of an object, by its key, out of the history.
func (r *Registry) Forget(ctx context.Context, d *resource.Definition, key string) error {
	if r.historian == nil {
		return NoHistory()
	}
	if err := r.historian.Forget(ctx, key); err != nil {
		return StorageError(err)
	}
	r.cache.ForgetPast(d.StoragePrefix)
	return nil
}

// RevisionAt returns the revision of the state of a target at a time.
func (r *Registry) RevisionAt(ctx context.Context, target Target, t time.Time) (int64, error) {
	if err := r.checkPast(&target); err != nil {
		return 0, err
	}
	return r.revisionAt(ctx, t)
}

// revisionAt returns the revision of the state at a time.
func (r *Registry) revisionAt(ctx context.Context, t time.Time) (int64, error) {
	revision, err := r.historian.At(ctx, t)
	var early *kv.TooEarlyError
	if errors.As(err, &early) {
		return 0, status.Expired(early.Error())
	}
	return revision, StorageError(err)
}

// GetAt returns an object as of a revision. It reads one key of the store.
func (r *Registry) GetAt(ctx context.Context, target Target, revision int64) (*watchcache.Object, error) {
	if err := target.checkStored(); err != nil {
		return nil, err
	}
	if err := target.checkName(); err != nil {
		return nil, err
	}
	if err := r.await(ctx, revision); err != nil {
		return nil, err
	}
	record, err := r.backend.Get(ctx, target.key(), revision)
	var compacted *kv.CompactedError
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, target.notFound()
	case errors.As(err, &compacted):
		return nil, status.Expired(fmt.Sprintf("too old resource version: %d (%d)", compacted.Asked, compacted.Oldest))
	case err != nil:
		return nil, StorageError(err)
	}
	return watchcache.NewObject(record.Key, record.Value, record.Revision), nil
}

// checkStored rejects a kind whose objects are computed on a read: they have no past.
func (t *Target) checkStored() error {
	if t.Version.Reader != nil {
		return status.BadRequest("%s are not stored and have no past: leave out asOf, history and resourceVersionMatch=Exact", t.Definition.GroupResource())
	}
	return nil
}

// A PastChange is a change of the history.
type PastChange struct {
	Type     watch.EventType
	Revision int64
	Time     time.Time
	Note     Note
	// Before and Object are the states before and after the change; nil if there is none.
	Before, Object *watchcache.Object
}

// Kept returns the revision up to which History yields the changes of a target: the newest one.
func (r *Registry) Kept(ctx context.Context, target Target) (int64, error) {
	if err := r.checkPast(&target); err != nil {
		return 0, err
	}
	if target.Name != "" {
		if err := target.checkName(); err != nil {
			return 0, err
		}
	}
	return r.Revision(ctx)
}

// History yields the changes of an object, or of all objects of a namespace or the cluster if the target has
// no name, in order: those after one revision up to another one, see Kept.
func (r *Registry) History(ctx context.Context, target Target, after, until int64) iter.Seq2[PastChange, error] {
	keys := target.Definition.NamespacePrefix(target.Namespace) + target.Name
	return func(yield func(PastChange, error) bool) {
		for past, err := range r.historian.Changes(ctx, keys, after) {
			if err != nil {
				yield(PastChange{}, pastError(err))
				return
			}
			if past.Revision > until || !yield(changeOf(past), nil) {
				return
			}
		}
	}
}

// Revision returns the newest revision of the store.
func (r *Registry) Revision(ctx context.Context) (int64, error) {
	revision, err := r.backend.Revision(ctx)
	return revision, StorageError(err)
}

// A Difference is an object that differs from the one in the state that the store began with. Its revision and
// its note are those of the last change.
type Difference struct {
	Definition *resource.Definition
	PastChange
}

// Differences yields the differences in the kinds of a set, by the keys of the objects. It needs a store over
// another one.
func (r *Registry) Differences(ctx context.Context, set *resource.Set) iter.Seq2[Difference, error] {
	kinds := storedKinds(set)
	return func(yield func(Difference, error) bool) {
		for e, err := range r.differ.Differences(ctx) {
			if err != nil {
				yield(Difference{}, StorageError(err))
				return
			}
			if d := kindOf(kinds, e.Key); d != nil && !yield(Difference{d, changeOf(kv.Past{Event: e})}, nil) {
				return
			}
		}
	}
}

// kindOf returns the kind of a key by the prefixes of kinds; nil for a key of no object.
func kindOf(kinds map[string]*resource.Definition, key string) *resource.Definition {
	end := len(resource.Root)
	for range 2 { // a prefix has one or two parts
		n := strings.IndexByte(key[end:], '/')
		if n < 0 {
			return nil
		}
		end += n + 1
		if d := kinds[key[:end]]; d != nil {
			return d
		}
	}
	return nil
}

// pastError is StorageError for a read of changes.
func pastError(err error) error {
	var compacted *kv.CompactedError
	if errors.As(err, &compacted) {
		return status.Expired(fmt.Sprintf("the changes after revision %d are no longer kept, the oldest is %d", compacted.Asked, compacted.Oldest))
	}
	return StorageError(err)
}

func changeOf(past kv.Past) PastChange {
	c := PastChange{Type: watch.Modified, Revision: past.Revision, Time: past.Time, Note: ParseNote(past.Note)}
	switch {
	case past.PrevRevision == kv.Absent:
		c.Type = watch.Added
	case past.Prev != nil: // otherwise it is no longer kept
		c.Before = watchcache.NewObject(past.Key, past.Prev, past.PrevRevision)
	}
	if past.Value != nil {
		c.Object = watchcache.NewObject(past.Key, past.Value, past.Revision)
	} else {
		c.Type = watch.Deleted
	}
	return c
}
