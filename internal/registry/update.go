package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// A Change returns the new object for an old one, which it must neither change nor share parts with.
// It is called again after a conflict with another write. old is nil if the object does not exist and
// may be created.
type Change func(old object.Tree) (object.Tree, error)

// Modify replaces an object by the result of change. A resourceVersion other than the stored one is a
// Conflict; without a resourceVersion the update is unconditional, if the kind allows that.
func (r *Registry) Modify(ctx context.Context, target Target, change Change, o WriteOptions) (Result, error) {
	ctx = r.Anew(ctx, target.Definition)
	return o.fitting(func(o WriteOptions) (Result, error) {
		for taken := 1; ; {
			result, err := r.modify(ctx, target, change, o)
			switch {
			case errors.Is(err, resource.ErrTaken):
				err = target.givenUp(ctx, taken)
				taken++
			case errors.Is(err, errConflict):
				err = ctx.Err()
			default:
				return result, err
			}
			if err != nil {
				return Result{}, err
			}
		}
	})
}

func (r *Registry) modify(ctx context.Context, target Target, change Change, o WriteOptions) (Result, error) {
	current, err := r.current(ctx, &target)
	if err != nil {
		return Result{}, err
	}
	w := &write{Registry: r, target: target, options: o, change: change, current: current}
	if current == nil {
		if !target.Definition.AllowCreateOnUpdate && !o.CreateMissing || target.Subresource != "" {
			return Result{}, target.notFound()
		}
		w.change = withoutUID(&target, change)
	}
	if err := w.through(ctx, asking[:]); err != nil {
		return Result{}, err
	}
	return w.run(ctx, making[:])
}

// fitting repeats a write without managedFields if they make the object too large for the store. An
// apply is not repeated.
func (o WriteOptions) fitting(write func(WriteOptions) (Result, error)) (Result, error) {
	result, err := write(o)
	if o.Account == nil || !status.Is(err, metav1.StatusReasonRequestEntityTooLarge) {
		return result, err
	}
	o.Account = func(_ context.Context, _, t object.Tree) object.Tree {
		delete(object.Metadata(t), "managedFields")
		return t
	}
	return write(o)
}

// withoutUID rejects an update with a uid if the object does not exist.
func withoutUID(target *Target, change Change) Change {
	return func(old object.Tree) (object.Tree, error) {
		t, err := change(old)
		if err == nil && object.UID(t) != "" {
			return nil, status.Conflict(target.Definition.GroupResource(), target.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", object.UID(t)))
		}
		return t, err
	}
}

// outdated reports whether the stored form of an object must change, such as its encryption.
func (r *Registry) outdated(ctx context.Context, key string) bool {
	if r.former == nil {
		return false
	}
	outdated, err := r.former.Outdated(ctx, key)
	return err == nil && outdated
}

// commit stores the encoded object, or removes an object that nothing holds any more.
func (w *write) commit(ctx context.Context) error {
	if err := w.options.fits(); err != nil {
		return cmp.Or(w.commitNothing(ctx), err)
	}
	record := kv.Write{Key: w.target.key(), Value: w.encoded.JSON, Guards: slices.Concat(w.guards, w.options.Guards)}
	for _, m := range w.marks {
		if m.Moves {
			record.With = append(record.With, kv.Change{Key: m.Key, Value: m.Value, Expect: m.Revision})
		} else {
			record.Guards = append(record.Guards, kv.Guard{Key: m.Key, Revision: m.Revision})
		}
	}
	var was []byte
	if w.current != nil {
		was, _ = w.current.JSON() // without it, the backend reads it
	}
	switch {
	case w.current == nil:
		w.result.Created = true
	case !w.gone && bytes.Equal(w.encoded.JSON, was) && !w.outdated(ctx, w.target.key()): // no change, so no write
		w.stored(w.current.Revision)
		return nil
	default:
		record.Expect, record.Was = w.current.Revision, was
	}
	if w.options.DryRun {
		return w.commitNothing(ctx)
	}
	record.Note = w.note(ctx)
	revision, err := w.Registry.commit(ctx, w.target.Definition, record)
	switch {
	case err != nil:
		return err
	case w.gone:
		if w.last != nil {
			setRevision(w.last, revision) // the client learns the revision of the deletion, as watchers do
		}
		w.result.Tree = w.lastSeen()
	default:
		w.stored(revision)
		if wrote := w.target.Definition.Wrote; wrote != nil {
			wrote(w.hooks())
		}
	}
	return nil
}

// stored sets the client's view of an object stored at a revision.
func (w *write) stored(revision int64) {
	setRevision(w.object, revision)
	w.result.Tree, w.result.Revision = w.object, revision
	if w.same {
		w.result.Stored = w.encoded
		w.result.Stored.Revision = revision
	}
}

// lastSeen returns the client's view of an object that is not stored.
func (w *write) lastSeen() object.Tree {
	if w.last != nil {
		return w.last
	}
	return w.object
}

// commitNothing ends a dry run.
func (w *write) commitNothing(ctx context.Context) error {
	w.result.Tree = w.lastSeen()
	if w.current != nil {
		return nil
	}
	o, err := w.Registry.current(ctx, &w.target)
	if err == nil && o != nil {
		return errConflict
	}
	return err
}

// deletable reports whether nothing holds an object that is being deleted.
func deletable(d *resource.Definition, t object.Tree) bool {
	if !object.Deleting(t) || gracePeriod(t) > 0 || len(object.Finalizers(t)) > 0 {
		return false
	}
	return d.HasFinalizers == nil || !d.HasFinalizers(t)
}

// addressOld checks that t may replace old: it is the same object, in the state that the client saw.
func addressOld(target *Target, t, old object.Tree) error {
	if err := target.Match(t); err != nil {
		return err
	}
	return matchRevision(target, t, old)
}

// matchRevision compares the resourceVersions of t and old. An empty one matches any state.
func matchRevision(target *Target, t, old object.Tree) error {
	d := target.Definition
	revision, err := askedRevision(t)
	if err != nil {
		return err
	}
	if revision == 0 {
		if !d.AllowUnconditionalUpdate && !target.Version.Lenient {
			errs := field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")}
			// Kubernetes names the resource here; elsewhere it names the kind.
			return status.Invalid(schema.GroupKind{Group: d.Group, Kind: d.Plural}, target.Name, errs)
		}
	} else if strconv.FormatInt(revision, 10) != object.ResourceVersion(old) {
		return status.Modified(d.GroupResource(), target.Name)
	}
	return nil
}

// askedRevision returns the revision in the resourceVersion of the client.
func askedRevision(t object.Tree) (int64, error) {
	revision, err := ParseRevision(object.ResourceVersion(t))
	if err != nil {
		return 0, status.BadRequest("%s", err)
	}
	return revision, nil
}
