package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
)

// review sees of every object that names owners whether they are there.
func (l *Lifecycle) review(ctx context.Context) error {
	for _, t := range l.owners.all() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := l.do(ctx, t); err != nil {
			l.queue.after(t, shortestRetry)
		}
	}
	return nil
}

// A verdict is what has become of the owners that an object names.
type verdict struct {
	solid    int         // they exist
	waiting  []types.UID // they are being deleted, after their dependents
	dangling []types.UID // they do not exist
}

// collect deletes an object that has no owner any more, and takes from one that
// has the references to those it has lost.
func (l *Lifecycle) collect(ctx context.Context, t task) error {
	if waits, _ := l.owners.waits(t.uid); waits {
		return l.await(ctx, t)
	}
	h, err := l.read(ctx, t.key)
	if err != nil || h == nil || h.UID != t.uid || h.Deleting || len(h.owners) == 0 {
		return err
	}
	return l.with(ctx, h.group(), h.key, func(d *resource.Definition) error {
		v, err := l.judge(ctx, d, h, t.do == check)
		var wrong *scopeError
		if errors.As(err, &wrong) {
			l.Logger.Info("an object names an owner that it cannot have, and is left alone", "key", h.key, "error", err)
			return nil
		}
		if err != nil {
			return err
		}
		return l.execute(ctx, d, h, v)
	})
}

func (l *Lifecycle) execute(ctx context.Context, d *resource.Definition, h *header, v verdict) error {
	switch lost := append(v.dangling, v.waiting...); {
	case v.solid > 0 && len(lost) == 0:
		return nil
	case v.solid > 0:
		return l.forget(ctx, d, h, lost)
	case len(v.waiting) > 0:
		has, circle := l.owners.circle(h.UID)
		if !has {
			break
		}
		if circle {
			if err := l.unblock(ctx, d, h); err != nil {
				return err
			}
		}
		return l.remove(ctx, d, h, metav1.DeletePropagationForeground)
	}
	policy := metav1.DeletePropagationBackground
	if h.has(metav1.FinalizerOrphanDependents) {
		policy = metav1.DeletePropagationOrphan
	} else if h.has(metav1.FinalizerDeleteDependents) {
		policy = metav1.DeletePropagationForeground
	}
	return l.remove(ctx, d, h, policy)
}

// judge looks at every owner that an object names. fresh says that it named one
// only now, so that a mistake is worth telling.
func (l *Lifecycle) judge(ctx context.Context, d *resource.Definition, h *header, fresh bool) (v verdict, err error) {
	for i := range h.owners {
		r := &h.owners[i]
		o, err := l.ownerKind(ctx, r)
		if err != nil {
			return v, err
		}
		if o.Namespaced && !d.Namespaced {
			if fresh {
				l.tellElsewhere(ctx, d, h, o, r)
			}
			return v, &scopeError{r}
		}
		namespace := ""
		if o.Namespaced {
			namespace = h.Namespace
		}
		owner, err := l.read(ctx, o.Key(namespace, r.Name))
		switch {
		case err != nil:
			return v, err
		case owner == nil || owner.UID != string(r.UID):
			v.dangling = append(v.dangling, r.UID)
			if fresh && o.Namespaced {
				l.tellElsewhere(ctx, d, h, o, r)
			}
		case owner.waits():
			v.waiting = append(v.waiting, r.UID)
		default:
			v.solid++
		}
	}
	return v, nil
}

// A scopeError says that an object in no namespace names an owner in one.
type scopeError struct{ reference *metav1.OwnerReference }

func (e *scopeError) Error() string {
	return fmt.Sprintf("cluster-scoped objects cannot refer to namespaced owners, as %s %s is", e.reference.Kind, e.reference.Name)
}

// ownerKind returns the Definition of the kind of an owner.
func (l *Lifecycle) ownerKind(ctx context.Context, r *metav1.OwnerReference) (*resource.Definition, error) {
	unknown := &unknownError{what: r.APIVersion + " " + r.Kind}
	if len(content.IsPathSegmentName(r.Name)) > 0 {
		return nil, unknown
	}
	d := findKind(l.Catalog.Set(), r.APIVersion, r.Kind)
	if d == nil {
		if err := l.Refresh(ctx); err != nil {
			return nil, err
		}
		d = findKind(l.Catalog.Set(), r.APIVersion, r.Kind)
	}
	if d == nil {
		return nil, unknown
	}
	return d, nil
}

// remove deletes an object if it still is what it was when it was judged, or
// has changed in other ways than in who owns it.
func (l *Lifecycle) remove(ctx context.Context, d *resource.Definition, h *header, policy metav1.DeletionPropagation) error {
	uid, revision := types.UID(h.UID), fmt.Sprint(h.Revision)
	options := &metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &revision},
		PropagationPolicy: &policy,
	}
	err := l.delete(ctx, d, h.key, options)
	if !status.Is(err, metav1.StatusReasonConflict) {
		return err
	}
	now, readErr := l.read(ctx, h.key)
	switch {
	case readErr != nil:
		return readErr
	case now == nil || now.UID != h.UID:
		return nil
	case !equality.Semantic.DeepEqual(now.owners, h.owners):
		return err
	}
	// Whoever writes the object often must not keep it alive.
	options.Preconditions.ResourceVersion = nil
	return l.delete(ctx, d, h.key, options)
}

// forget takes the references to owners from an object.
func (l *Lifecycle) forget(ctx context.Context, d *resource.Definition, h *header, owners []types.UID) error {
	return l.change(ctx, d, h.key, h.UID, "", func(t object.Tree) bool {
		m := object.Metadata(t)
		references, _ := m["ownerReferences"].([]any)
		kept := slices.DeleteFunc(slices.Clone(references), func(r any) bool {
			reference, _ := r.(object.Tree)
			uid, _ := reference["uid"].(string)
			return slices.Contains(owners, types.UID(uid))
		})
		m["ownerReferences"] = kept
		if len(kept) == 0 {
			delete(m, "ownerReferences")
		}
		return len(kept) != len(references)
	})
}

// unblock lets no owner of an object wait for it.
func (l *Lifecycle) unblock(ctx context.Context, d *resource.Definition, h *header) error {
	changed := false
	err := l.change(ctx, d, h.key, h.UID, "", func(t object.Tree) bool {
		references, _ := object.Metadata(t)["ownerReferences"].([]any)
		changed = false
		for _, r := range references {
			if reference, _ := r.(object.Tree); reference["blockOwnerDeletion"] == true {
				reference["blockOwnerDeletion"] = false
				changed = true
			}
		}
		return changed
	})
	if err != nil || !changed {
		return err
	}
	now, err := l.read(ctx, h.key)
	if err == nil && now != nil && now.UID == h.UID {
		*h = *now
	}
	return err
}

// await lets an object go that waits for its dependents, once there are none
// that it waits for.
func (l *Lifecycle) await(ctx context.Context, t task) error {
	if waits, blocked := l.owners.waits(t.uid); !waits || blocked {
		return nil
	}
	return l.release(ctx, t, metav1.FinalizerDeleteDependents)
}

// orphan makes all dependents of an object forget it, and then lets it go.
func (l *Lifecycle) orphan(ctx context.Context, t task) error {
	h, err := l.read(ctx, t.key)
	if err != nil || h == nil || h.UID != t.uid || !h.Deleting || !h.has(metav1.FinalizerOrphanDependents) {
		return err
	}
	err = each(ctx, parallel, l.owners.dependents(t.uid), func(n *node) error {
		h, err := l.read(ctx, n.key)
		if err != nil || h == nil || h.UID != n.uid {
			return err
		}
		err = l.with(ctx, h.group(), h.key, func(d *resource.Definition) error {
			return l.forget(ctx, d, h, []types.UID{types.UID(t.uid)})
		})
		if isUnknown(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.release(ctx, t, metav1.FinalizerOrphanDependents)
}

// release takes a finalizer from an object.
func (l *Lifecycle) release(ctx context.Context, t task, finalizer string) error {
	h, err := l.read(ctx, t.key)
	if err != nil || h == nil || h.UID != t.uid || !h.has(finalizer) {
		return err
	}
	return l.with(ctx, h.group(), h.key, func(d *resource.Definition) error {
		return l.change(ctx, d, h.key, h.UID, "", func(t object.Tree) bool {
			was := object.Finalizers(t)
			now := slices.DeleteFunc(slices.Clone(was), func(f string) bool { return f == finalizer })
			object.SetFinalizers(t, now)
			return len(now) != len(was)
		})
	})
}
