package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Deletion is what came of deleting an object.
type Deletion struct {
	// Object as the client sees it: as it was last or, where it is only marked
	// as being deleted, as it is now. Of one that is gone, and that the kind does
	// not answer with, it has no more than is in a header.
	Object Result
	// Gone says that the object does not exist any more.
	Gone bool
	// ended says that the object is only marked, that it has no time to end, and that
	// nothing holds it.
	ended bool
}

// Delete deletes an object, or marks it as being deleted where something still
// holds it or it has time to end. The options are valid.
//
// An object of a kind that gives time to end is marked before it is removed, even if it
// has none: those who watch see that it was deleted, and not only that it is gone.
func (r *Registry) Delete(ctx context.Context, target Target, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	ctx = r.Anew(ctx, target.Definition)
	marked, err := r.deleteOnce(ctx, target, options, o)
	if err != nil || !marked.ended {
		return marked, err
	}
	removed, err := r.deleteOnce(ctx, target, afterMark(options, marked.Object.Tree), o)
	if status.Is(err, metav1.StatusReasonNotFound) { // somebody else was faster
		marked.Gone = true
		return marked, nil
	}
	return removed, err
}

// deleteOnce makes one write that deletes an object.
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
	if current.Err != nil {
		return r.deleteUnreadable(ctx, target, current, options, o)
	}
	if isRemoval(&target, current, options) {
		return r.removeUnparsed(ctx, target, current, options, o)
	}
	stored := storedIn(d, target.Version, current)
	if o.AsStored {
		target.Version = stored
	}
	// What is only marked stays in the version it is stored in, if that is known. Versions
	// that differ by no more than their schema are stored in the storage version.
	o.AsStored = target.Version == stored && (d.Convert != nil || stored.Storage)
	old, err := r.Decode(ctx, d, target.Version, current)
	if err != nil && !json.Valid(current.JSON) {
		return r.deleteUnreadable(ctx, target, current, options, o)
	}
	if err != nil {
		return Deletion{}, err
	}
	if o := options.IgnoreStoreReadErrorWithClusterBreakingPotential; o != nil && *o {
		return Deletion{}, status.Conflict(d.GroupResource(), target.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage", current.Key))
	}
	if err := checkPreconditions(&target, old, options.Preconditions); err != nil {
		return Deletion{}, err
	}
	options = options.DeepCopy() // admission sees how long the object has
	w := r.deletionOf(ctx, target, current, options, o)
	w.old, w.admission.old = old, old
	if to := deciding(d, target.Version); to != target.Version && !o.AsStored {
		w.target.Version, w.asked = to, target.Version
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

// deletionOf is a write that deletes an object, or marks it.
func (r *Registry) deletionOf(ctx context.Context, target Target, current *watchcache.Object, options *metav1.DeleteOptions, o WriteOptions) *write {
	w := &write{Registry: r, target: target, options: o, current: current}
	w.admission = &Admission{Operation: Delete, Target: target, options: o, deletion: options}
	if o.collected {
		w.admission.Target.Name = ""
	}
	w.admission.from(ctx)
	return w
}

// removeUnparsed deletes an object of which the header says enough.
func (r *Registry) removeUnparsed(ctx context.Context, target Target, current *watchcache.Object, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	t := headerOf(&target, current)
	if err := checkPreconditions(&target, t, options.Preconditions); err != nil {
		return Deletion{}, err
	}
	return r.remove(ctx, target, current, t, options, o)
}

// remove deletes an object that the client sees as t.
func (r *Registry) remove(ctx context.Context, target Target, current *watchcache.Object, t object.Tree, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	w := r.deletionOf(ctx, target, current, options, o)
	w.gone, w.object = true, t
	w.admission.oldest = func(ctx context.Context) (object.Tree, error) {
		return r.Decode(ctx, target.Definition, target.Version, current)
	}
	_, err := w.run(ctx, deletion[:])
	return Deletion{Object: Result{Tree: t}, Gone: true}, err
}

// isRemoval reports whether all that is needed to delete an object is in its header:
// nothing holds it or is to hold it, and nobody is shown it.
func isRemoval(target *Target, current *watchcache.Object, o *metav1.DeleteOptions) bool {
	d := target.Definition
	switch {
	case current.Held, current.Deleting, d.ReturnsDeletedIn(target.Version), d.GracePeriod != nil, d.BeforeDelete != nil, d.HasFinalizers != nil, d.Resolve != nil, converts(d, target.Version, current):
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

// headerOf is as much of an object as can be told without parsing it.
func headerOf(target *Target, o *watchcache.Object) object.Tree {
	t := object.Tree{}
	object.SetMetaString(t, "name", target.Name)
	object.SetMetaString(t, "uid", o.UID)
	setRevision(t, o.Revision)
	return t
}

// markDeleted returns what old is once its deletion was asked for, and what becomes of
// the time that it has to end.
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
			Object: t, Old: old, Namespace: target.Namespace, Name: target.Name, DryRun: o.DryRun,
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

// propagate records in the finalizers of t what is to become of its dependents:
// with a finalizer they are orphaned, or deleted, before t goes. What the client
// asks for counts before what was asked for earlier.
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

// deleteUnreadable removes what nobody can decode, so that it is not there for
// ever. Nothing that it may once have said can hold it.
func (r *Registry) deleteUnreadable(ctx context.Context, target Target, current *watchcache.Object, options *metav1.DeleteOptions, o WriteOptions) (Deletion, error) {
	if err := checkPreconditions(&target, headerOf(&target, current), options.Preconditions); err != nil {
		return Deletion{}, err
	}
	t := object.Tree{"apiVersion": target.Definition.APIVersion(target.Version.Name), "kind": target.Definition.Kind}
	object.SetMetaString(t, "name", target.Name)
	object.SetMetaString(t, "namespace", target.Namespace)
	return r.remove(ctx, target, current, t, options, o)
}

func checkPreconditions(target *Target, old object.Tree, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	d := target.Definition
	told := d.ToldKind()
	// Kubernetes names the kind here where it names the resource elsewhere.
	of := schema.GroupResource{Group: told.Group, Resource: told.Kind}
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

// DeleteCollection deletes the objects of a list one after the other and
// returns them as they were. What is gone already when its turn comes is not an
// error.
func (r *Registry) DeleteCollection(ctx context.Context, target Target, list ListOptions, options *metav1.DeleteOptions, o WriteOptions) (*List, error) {
	if list.Limit == 0 { // kube-apiserver reads pages, for which a revision means that one and no later one
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
	if err := r.Warm(ctx, target.Definition, target.Version, l.Items); err != nil {
		return nil, err
	}
	for _, item := range l.Items {
		one := target
		one.Namespace, one.Name = target.Definition.Split(item.Key)
		_, err := r.Delete(ctx, one, options, o)
		if err != nil && !status.Is(err, metav1.StatusReasonNotFound) {
			return nil, err
		}
	}
	return l, nil
}
