package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Deletion is the result of a delete.
type Deletion struct {
	// Object as the client sees it: its last state or, if it is only marked as being deleted, its
	// present state. If the object is gone and the kind's response does not include it, Object has
	// only the fields of the header; it has no Tree if it was corrupt.
	Object Result
	// Gone is true if the object no longer exists.
	Gone bool
	// ended is true if the object is only marked, without a grace period, and nothing holds it.
	ended bool
}

// Delete deletes an object, or marks it as being deleted if a finalizer or a grace period holds it.
// The options are valid.
//
// An object of a kind with grace periods is marked before it is removed, even if its period is 0:
// watchers see the deletion mark, and not only the removal.
func (r *Registry) Delete(ctx context.Context, target Target, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	ctx = r.Anew(ctx, target.Definition)
	marked, err := r.deleteOnce(ctx, target, options, o)
	if err != nil || !marked.ended {
		return marked, err
	}
	removed, err := r.deleteOnce(ctx, target, afterMark(options, marked.Object.Tree), o)
	if status.Is(err, metav1.StatusReasonNotFound) { // another delete was faster
		marked.Gone = true
		return marked, nil
	}
	return removed, err
}

// deleteOnce makes one attempt to delete an object.
func (r *Registry) deleteOnce(ctx context.Context, target Target, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	for {
		deletion, err := r.delete(ctx, target, options, o)
		if !errors.Is(err, errConflict) {
			return deletion, err
		}
		if ctx.Err() != nil {
			return Deletion{}, ctx.Err()
		}
	}
}

func (r *Registry) delete(ctx context.Context, target Target, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	d := target.Definition
	current, err := r.current(ctx, &target)
	if err != nil {
		return Deletion{}, err
	}
	if current == nil {
		return Deletion{}, target.notFound()
	}
	unsafe := IgnoresReadErrors(options)
	switch {
	case current.Err() != nil && unsafe:
		return r.deleteCorrupt(ctx, target, current, options, o)
	case current.Err() != nil:
		return Deletion{}, r.corrupt(ctx, current, current.Err())
	}
	if isRemoval(&target, current, options) {
		return r.removeUnparsed(ctx, target, current, options, o)
	}
	stored := storedIn(d, target.Version, current)
	if o.AsStored {
		target.Version = stored
	}
	// A marked object stays in its stored version, if that is known. Versions that differ only in
	// their schema are stored in the storage version.
	o.AsStored = target.Version == stored && (d.Convert != nil || stored.Storage)
	old, err := r.Decode(ctx, d, target.Version, current)
	if err != nil {
		if unsafe && isCorrupt(err) {
			return r.deleteCorrupt(ctx, target, current, options, o)
		}
		return Deletion{}, err
	}
	if unsafe {
		return Deletion{}, decodable(&target, current)
	}
	if err := checkPreconditions(&target, old, options.Preconditions); err != nil {
		return Deletion{}, err
	}
	options = options.DeepCopy() // admission sees the grace period of the object
	w := r.deletionOf(ctx, target, current, options, o)
	w.old, w.admission.old = old, old
	if to := deciding(d, target.Version); to != target.Version && !o.AsStored {
		w.target.Version, w.requestedVersion = to, target.Version
		if w.old, err = r.Decode(ctx, d, to, current); err != nil {
			return Deletion{}, err
		}
	}
	marked, time := r.markDeleted(ctx, &target, w.old, options, o)
	if time == runs {
		if err := w.options.fits(); err != nil {
			return Deletion{}, err
		}
		return Deletion{Object: Result{Tree: old}}, nil
	}
	ended := time == begins && deletable(d, marked)
	if w.gone = !ended && deletable(d, marked); w.gone {
		w.last = old
	}
	w.ending = ended
	w.object = marked
	result, err := w.run(ctx, deletion[:])
	return Deletion{Object: result, Gone: w.gone || ended && o.DryRun, ended: ended && !o.DryRun}, err
}

// deletionOf returns the write that removes or marks an object.
func (r *Registry) deletionOf(ctx context.Context, target Target, current *watchcache.Object, options *metav1.DeleteOptions, o WriteOptions) *write {
	w := &write{Registry: r, target: target, options: o, current: current}
	w.admission = &Admission{Operation: Delete, Target: target, Gates: r.gates, options: o, deletion: options}
	if o.collected {
		w.admission.Target.Name = ""
	}
	w.admission.from(ctx)
	return w
}

// removeUnparsed removes an object whose header is enough for admission.
func (r *Registry) removeUnparsed(ctx context.Context, target Target, current *watchcache.Object, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	t := headerOf(&target, current)
	if err := checkPreconditions(&target, t, options.Preconditions); err != nil {
		return Deletion{}, err
	}
	return r.remove(ctx, target, current, t, options, o)
}

// remove removes an object, with t as its last state for the client.
func (r *Registry) remove(ctx context.Context, target Target, current *watchcache.Object, t object.Tree, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	w := r.deletionOf(ctx, target, current, options, o)
	w.gone, w.object = true, t
	w.admission.oldest = func(ctx context.Context) (object.Tree, error) {
		return r.Decode(ctx, target.Definition, target.Version, current)
	}
	_, err := w.run(ctx, deletion[:])
	return Deletion{Object: Result{Tree: t}, Gone: true}, err
}

// isRemoval reports whether the header is enough for a delete: nothing holds the object, no finalizer
// is to be added, and no response shows it.
func isRemoval(target *Target, current *watchcache.Object, o *metav1.DeleteOptions) bool {
	d := target.Definition
	switch {
	case current.Held(), current.Deleting(), d.ReturnsDeletedIn(target.Version), d.GracePeriod != nil, d.BeforeDelete != nil, d.HasFinalizers != nil, d.Resolve != nil, converts(d, target.Version, current):
		return false
	case o.IgnoreStoreReadErrorWithClusterBreakingPotential != nil:
		return false
	case o.PropagationPolicy != nil && *o.PropagationPolicy != metav1.DeletePropagationBackground:
		return false
	}
	//lint:ignore SA1019 old clients send it
	leave := o.OrphanDependents
	if leave == nil && o.PropagationPolicy == nil {
		return !d.OrphansDependents
	}
	return leave == nil || !*leave
}

// headerOf returns the fields of an object that are known without parsing it.
func headerOf(target *Target, o *watchcache.Object) object.Tree {
	t := object.Tree{}
	object.SetMetaString(t, "name", target.Name)
	object.SetMetaString(t, "uid", o.UID())
	setRevision(t, o.Revision)
	return t
}

// markDeleted returns old with its deletion mark, and the effect on its grace period.
func (r *Registry) markDeleted(ctx context.Context, target *Target, old object.Tree, options *metav1.DeleteOptions, o WriteOptions) (object.Tree, graceTime) {
	d := target.Definition
	deleting := object.Deleting(old)
	if deleting && d.HasFinalizers != nil && d.HasFinalizers(old) {
		return old, none
	}
	t := object.CloneTree(old)
	time := r.grace(d, t, options)
	switch {
	case time == runs:
		return old, runs
	case time == begins:
	case !deleting && d.BeforeDelete != nil:
		object.SetMetaString(t, "deletionTimestamp", object.Timestamp(r.now()))
		d.BeforeDelete(ctx, &resource.Change{
			Object: t, Old: old, Namespace: target.Namespace, Name: target.Name, DryRun: o.DryRun, Gates: r.gates,
		}, options)
		return t, none
	default:
		r.setDeletion(t, 0)
	}
	if g := object.Generation(t); g > 0 && !deleting {
		object.SetGeneration(t, g+1)
	}
	propagate(d, t, options)
	return t, time
}

// propagate records the propagation policy in the finalizers of t: a finalizer orphans or deletes the
// dependents before t goes. The options of this request take precedence over earlier ones.
func propagate(d *resource.Definition, t object.Tree, options *metav1.DeleteOptions) {
	const orphan, wait = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	was := object.Finalizers(t)
	isOurs := func(f string) bool { return f == orphan || f == wait }
	//lint:ignore SA1019 old clients send it
	leave := options.OrphanDependents
	ours := ""
	switch {
	case d.OwnsNothing:
	case leave != nil:
		if *leave {
			ours = orphan
		}
	case options.PropagationPolicy == nil:
		if i := slices.IndexFunc(was, isOurs); i >= 0 {
			ours = was[i]
		} else if d.OrphansDependents {
			ours = orphan
		}
	case *options.PropagationPolicy == metav1.DeletePropagationOrphan:
		ours = orphan
	case *options.PropagationPolicy == metav1.DeletePropagationForeground:
		ours = wait
	}
	now := slices.DeleteFunc(slices.Clone(was), isOurs)
	if ours != "" {
		now = append(now, ours)
	}
	if len(now) != len(was) || ours != "" && !slices.Contains(was, ours) {
		object.SetFinalizers(t, now)
	}
}

// deleteCorrupt removes an object that cannot be decrypted or decoded. Neither preconditions nor finalizers hold it, and
// admission plugins cannot decide about it. The cache may not know yet that a key has come back, so the value is read again.
func (r *Registry) deleteCorrupt(ctx context.Context, target Target, current *watchcache.Object, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	stored, err := r.backend.Get(ctx, current.Key, kv.Latest)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return Deletion{}, target.notFound()
	case err != nil:
		return Deletion{}, StorageError(err)
	case stored.Revision != current.Revision:
		return Deletion{}, errConflict
	}
	if _, err := r.parse(ctx, current, stored.Value); err == nil {
		return Deletion{}, decodable(&target, current)
	} else if !isCorrupt(err) {
		return Deletion{}, err
	}
	w := r.deletionOf(ctx, target, current, options, o)
	if err := r.plugins.guard(ctx, w.admission); err != nil {
		return Deletion{}, err
	}
	w.gone, w.object = true, headerOf(&target, current)
	_, err = w.run(ctx, nil)
	return Deletion{Gone: true}, err
}

// IgnoresReadErrors reports whether an object is to be deleted even if it is unreadable.
func IgnoresReadErrors(o *metav1.DeleteOptions) bool {
	ignore := o.IgnoreStoreReadErrorWithClusterBreakingPotential
	return ignore != nil && *ignore
}

// decodable returns the error for an unsafe deletion of an object that can be read.
func decodable(target *Target, o *watchcache.Object) error {
	return status.Conflict(target.Definition.GroupResource(), target.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage", o.Key))
}

func checkPreconditions(target *Target, old object.Tree, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	d := target.Definition
	kind := d.ErrorKind()
	// Kubernetes names the kind here; elsewhere it names the resource.
	of := schema.GroupResource{Group: kind.Group, Resource: kind.Kind}
	wrong := "the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s"
	if failed := d.Strategy.PreconditionFailed; failed != "" {
		of, wrong = d.GroupResource(), failed+": %s in precondition: %s, %s in object meta: %s%.0s"
	}
	if uid := object.UID(old); p.UID != nil && string(*p.UID) != uid {
		return status.Conflict(of, target.Name, fmt.Errorf(wrong, "UID", *p.UID, "UID", uid, "deleted and then recreated"))
	}
	if at := object.ResourceVersion(old); p.ResourceVersion != nil && *p.ResourceVersion != at {
		return status.Conflict(of, target.Name, fmt.Errorf(wrong, "ResourceVersion", *p.ResourceVersion, "ResourceVersion", at, "modified"))
	}
	return nil
}

// DeleteCollection deletes the objects of a list one after the other and returns their last states. An
// object that is already gone is not an error.
func (r *Registry) DeleteCollection(ctx context.Context, target Target, list ListOptions, options *metav1.DeleteOptions, o WriteOptions) (*List, error) {
	if list.Limit == 0 { // kube-apiserver reads pages, for which a revision is exact
		list.Limit = math.MaxInt64
	}
	l, err := r.List(ctx, target, list)
	if err != nil {
		return nil, err
	}
	if err := o.fits(); err != nil {
		return nil, err
	}
	o.collected, o.Fits = true, nil
	ctx = r.Anew(ctx, target.Definition)
	if err := r.Warm(ctx, target.Definition, target.Version, l.Items.All()); err != nil {
		return nil, err
	}
	for item := range l.Items.All() {
		one := target
		one.Namespace, one.Name = target.Definition.Split(item.Key)
		_, err := r.Delete(ctx, one, options, o)
		if err != nil && !status.Is(err, metav1.StatusReasonNotFound) {
			return nil, err
		}
	}
	return l, nil
}
