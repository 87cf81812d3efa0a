package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
	"github.com/anykind/anykind/internal/watchcache"
)

// A Change makes a new object of an old one, which it must neither change nor
// share parts of. It is called again when somebody else was faster. old is nil
// where the object does not exist and may be created.
type Change func(old object.Tree) (object.Tree, error)

// Modify replaces an object by what change makes of it. An object that comes
// back with a resourceVersion other than the stored one is a Conflict; one
// without is written over whatever is there, if the kind allows that.
func (r *Registry) Modify(ctx context.Context, target Target, change Change, o WriteOptions) (Result, error) {
	for {
		result, err := r.modify(ctx, target, change, o)
		if !errors.Is(err, errConflict) {
			return result, err
		}
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
	}
}

func (r *Registry) modify(ctx context.Context, target Target, change Change, o WriteOptions) (Result, error) {
	d, v := target.Definition, target.Version
	current, err := r.current(ctx, &target)
	if err != nil {
		return Result{}, err
	}
	if current == nil {
		return r.createByUpdate(ctx, target, change, o)
	}
	if o.AsStored {
		v = storedIn(d, v, current)
		target.Version = v
	}
	old, err := r.Decode(ctx, d, v, current)
	if err != nil {
		return Result{}, err
	}
	t, err := change(old)
	if err != nil {
		return Result{}, err
	}
	if err := checkTarget(&target, t, old); err != nil {
		return Result{}, err
	}
	end, err := begin(ctx, d)
	if err != nil {
		return Result{}, err
	}
	defer end()
	a := &Admission{Operation: Update, Target: target, Object: t, Old: old, DryRun: o.DryRun, Warn: o.Warn}
	if err := r.admit.Mutate(ctx, a); err != nil {
		return Result{}, err
	}
	t = a.Object
	if err := r.prepareUpdate(ctx, target, t, old, o); err != nil {
		return Result{}, err
	}
	if err := r.admit.Validate(ctx, a); err != nil {
		return Result{}, err
	}
	if d.Settle != nil {
		d.Settle(t, old)
	}
	return r.replace(ctx, target, current, t, a, o)
}

// prepareUpdate completes t with what it keeps of old, and validates it.
func (r *Registry) prepareUpdate(ctx context.Context, target Target, t, old object.Tree, o WriteOptions) error {
	d, v := target.Definition, target.Version
	keepSystemMetadata(t, old)
	keep := v.Keep
	if s := v.Subresource(target.Subresource); s != nil {
		keep = s.Keep
	}
	if keep != nil {
		keep(t, old)
	}
	if d.Prepare != nil {
		d.Prepare(t, old)
	}
	if d.HasGeneration {
		bumpGeneration(v, t, old)
	}
	return r.validate(ctx, target, t, old, o)
}

// replace writes t over current, or deletes it where nothing holds it any more.
func (r *Registry) replace(ctx context.Context, target Target, current *watchcache.Object, t object.Tree, a *Admission, o WriteOptions) (Result, error) {
	d, v := target.Definition, target.Version
	if deletable(d, t) {
		return r.remove(ctx, target, current, t, a.Guards, o)
	}
	if o.AsStored {
		return r.overwrite(ctx, target, current, t, encode(t), true, a, o)
	}
	data, t, same, err := stored(ctx, d, v, t)
	if err != nil {
		return Result{}, err
	}
	return r.overwrite(ctx, target, current, t, data, same, a, o)
}

// overwrite writes data, which is t as it is to be stored, over current. same
// says that it is t in the version of the target.
func (r *Registry) overwrite(ctx context.Context, target Target, current *watchcache.Object, t object.Tree, data []byte, same bool, a *Admission, o WriteOptions) (Result, error) {
	revision := current.Revision
	switch {
	case bytes.Equal(data, current.JSON):
		// Nothing changes, nothing is written.
	case o.DryRun:
		return Result{Tree: t}, nil
	default:
		var err error
		revision, err = r.commit(ctx, target.Definition, kv.Write{Key: target.key(), Value: data, Expect: current.Revision, Was: current.JSON, Guards: a.Guards})
		if err != nil {
			return Result{}, err
		}
	}
	setRevision(t, revision)
	result := Result{Tree: t, Revision: revision}
	if same {
		result.Stored = data
	}
	return result, nil
}

// remove ends the life of an object that an update released. The client sees
// it as it was last.
func (r *Registry) remove(ctx context.Context, target Target, current *watchcache.Object, t object.Tree, guards []kv.Guard, o WriteOptions) (Result, error) {
	if !o.DryRun {
		_, err := r.commit(ctx, target.Definition, kv.Write{Key: target.key(), Expect: current.Revision, Was: current.JSON, Guards: guards})
		if err != nil {
			return Result{}, err
		}
	}
	return Result{Tree: t}, nil
}

// deletable reports whether an object that is being deleted has nothing left to
// wait for.
func deletable(d *resource.Definition, t object.Tree) bool {
	if !object.Deleting(t) || len(object.Finalizers(t)) > 0 {
		return false
	}
	return d.Hold == nil || !d.Hold(t)
}

// createByUpdate creates what an update found missing, if the kind allows it.
func (r *Registry) createByUpdate(ctx context.Context, target Target, change Change, o WriteOptions) (Result, error) {
	if !target.Definition.AllowCreateOnUpdate && !o.CreateMissing || target.Subresource != "" {
		return Result{}, target.notFound()
	}
	t, err := change(nil)
	if err != nil {
		return Result{}, err
	}
	if object.UID(t) != "" {
		return Result{}, status.Conflict(target.Definition.GroupResource(), target.Name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", object.UID(t)))
	}
	if err := target.Match(t); err != nil {
		return Result{}, err
	}
	if _, err := askedRevision(t); err != nil {
		return Result{}, err
	}
	object.SetMetaString(t, "resourceVersion", "")
	return r.create(ctx, target, t, o)
}

// checkTarget checks that t may replace old: that it means the same object, in
// the state the client has seen.
func checkTarget(target *Target, t, old object.Tree) error {
	d := target.Definition
	if err := target.Match(t); err != nil {
		return err
	}
	revision, err := askedRevision(t)
	if err != nil {
		return err
	}
	if revision == 0 {
		if !d.AllowUnconditionalUpdate {
			errs := field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")}
			// Kubernetes names the resource here where it names the kind elsewhere.
			return status.Invalid(schema.GroupKind{Group: d.Group, Kind: d.Plural}, target.Name, errs)
		}
		object.SetMetaString(t, "resourceVersion", object.ResourceVersion(old))
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
