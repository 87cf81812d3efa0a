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

// A Change makes a new object of an old one, which it must neither change nor
// share parts of. It is called again when somebody else was faster. old is nil
// where the object does not exist and may be created.
type Change func(old object.Tree) (object.Tree, error)

// Modify replaces an object by what change makes of it. An object that comes
// back with a resourceVersion other than the stored one is a Conflict; one
// without is written over whatever is there, if the kind allows that.
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

// fitting makes a write, and makes it again without an account of who manages what if
// the object is too large for the store with it. What is applied is not stored without.
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

// withoutUID refuses to create an object of a uid that an update is about.
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

// commit stores what was encoded, or removes an object that nothing holds any more.
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
	switch {
	case w.current == nil:
		w.result.Created = true
	case !w.gone && bytes.Equal(w.encoded.JSON, w.current.JSON): // nothing changes, and nothing is written
		w.stored(w.current.Revision)
		return nil
	default:
		record.Expect, record.Was = w.current.Revision, w.current.JSON
	}
	if w.options.DryRun {
		return w.commitNothing(ctx)
	}
	revision, err := w.Registry.commit(ctx, w.target.Definition, record)
	switch {
	case err != nil:
		return err
	case w.gone:
		if w.last != nil {
			setRevision(w.last, revision) // who deletes learns when, as who watches does
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

// stored says what the client sees of an object that is stored at a revision.
func (w *write) stored(revision int64) {
	setRevision(w.object, revision)
	w.result.Tree, w.result.Revision = w.object, revision
	if w.same {
		w.result.Stored = w.encoded
		w.result.Stored.Revision = revision
	}
}

// lastSeen is what the client sees of an object that is not stored.
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

// deletable reports whether an object that is being deleted has nothing left to
// wait for.
func deletable(d *resource.Definition, t object.Tree) bool {
	if !object.Deleting(t) || gracePeriod(t) > 0 || len(object.Finalizers(t)) > 0 {
		return false
	}
	return d.HasFinalizers == nil || !d.HasFinalizers(t)
}

// addressOld checks that t may replace old: that it means the same object, in the state
// that the client has seen.
func addressOld(target *Target, t, old object.Tree) error {
	if err := target.Match(t); err != nil {
		return err
	}
	return matchRevision(target, t, old)
}

// matchRevision checks that an object is of the state that the client saw. One that says of none
// is of any.
func matchRevision(target *Target, t, old object.Tree) error {
	d := target.Definition
	revision, err := askedRevision(t)
	if err != nil {
		return err
	}
	if revision == 0 {
		if !d.AllowUnconditionalUpdate && !target.Version.Lenient {
			errs := field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")}
			// Kubernetes names the resource here where it names the kind elsewhere.
			return status.Invalid(schema.GroupKind{Group: d.Group, Kind: d.Plural}, target.Name, errs)
		}
	} else if strconv.FormatInt(revision, 10) != object.ResourceVersion(old) {
		return status.Modified(d.GroupResource(), target.Name)
	}
	return nil
}

// askedRevision is the revision that a client says an object has.
func askedRevision(t object.Tree) (int64, error) {
	revision, err := ParseRevision(object.ResourceVersion(t))
	if err != nil {
		return 0, status.BadRequest("%s", err)
	}
	return revision, nil
}
