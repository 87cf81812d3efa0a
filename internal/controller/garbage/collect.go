package garbage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// review checks the owners of every object with owner references.
func (c *Controller) review(ctx context.Context) error {
	for _, t := range c.owners.all() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.queue.Try(ctx, t)
	}
	return nil
}

// found classifies the owners of an object.
type found struct {
	solid    int         // existing owners
	waiting  []types.UID // owners in foreground deletion
	dangling []types.UID // owners that do not exist
}

// collect deletes an object without remaining owners. Otherwise it removes the references to
// missing owners.
func (c *Controller) collect(ctx context.Context, t controller.Task) error {
	if waits, _ := c.owners.waits(t.UID); waits {
		return c.await(ctx, t)
	}
	h, err := c.objects.Read(ctx, t.Key)
	if err != nil || h == nil || h.UID != t.UID || h.Deleting || len(h.Owners) == 0 {
		return err
	}
	return c.objects.With(ctx, h.Group(), h.Key, func(d *resource.Definition) error {
		v, err := c.findOwners(ctx, d, h, t.Do == check)
		var wrong *scopeError
		if errors.As(err, &wrong) {
			c.objects.Logger.Info("an object has an impossible owner and is not collected", "key", h.Key, "error", err)
			return nil
		}
		if err != nil {
			return err
		}
		return c.execute(ctx, d, h, v)
	})
}

func (c *Controller) execute(ctx context.Context, d *resource.Definition, h *controller.Header, v found) error {
	switch lost := append(v.dangling, v.waiting...); {
	case v.solid > 0 && len(lost) == 0:
		return nil
	case v.solid > 0:
		return c.forget(ctx, d, h, lost)
	case len(v.waiting) > 0:
		has, circle := c.owners.circle(h.UID)
		if !has {
			break
		}
		if circle {
			if err := c.unblock(ctx, d, h); err != nil {
				return err
			}
		}
		return c.remove(ctx, d, h, metav1.DeletePropagationForeground)
	}
	policy := metav1.DeletePropagationBackground
	if h.Has(metav1.FinalizerOrphanDependents) {
		policy = metav1.DeletePropagationOrphan
	} else if h.Has(metav1.FinalizerDeleteDependents) {
		policy = metav1.DeletePropagationForeground
	}
	return c.remove(ctx, d, h, policy)
}

// findOwners looks up every owner of an object. With fresh, which means a new owner reference, it
// reports an invalid owner in an Event.
func (c *Controller) findOwners(ctx context.Context, d *resource.Definition, h *controller.Header, fresh bool) (v found, err error) {
	for i := range h.Owners {
		r := &h.Owners[i]
		o, err := c.ownerKind(ctx, r)
		if err != nil {
			return v, err
		}
		if o.Namespaced && !d.Namespaced {
			if fresh {
				c.reportElsewhere(ctx, d, h, o, r)
			}
			return v, &scopeError{r}
		}
		namespace := ""
		if o.Namespaced {
			namespace = h.Namespace
		}
		owner, err := c.objects.Read(ctx, o.Key(namespace, r.Name))
		switch {
		case err != nil:
			return v, err
		case owner == nil || owner.UID != string(r.UID):
			v.dangling = append(v.dangling, r.UID)
			if fresh && o.Namespaced {
				c.reportElsewhere(ctx, d, h, o, r)
			}
		case waits(owner):
			v.waiting = append(v.waiting, r.UID)
		default:
			v.solid++
		}
	}
	return v, nil
}

// A scopeError means that a cluster-scoped object has a namespaced owner.
type scopeError struct{ reference *metav1.OwnerReference }

func (e *scopeError) Error() string {
	return fmt.Sprintf("cluster-scoped objects cannot refer to namespaced owners, as %s %s is", e.reference.Kind, e.reference.Name)
}

// ownerKind returns the Definition of the kind of an owner.
func (c *Controller) ownerKind(ctx context.Context, r *metav1.OwnerReference) (*resource.Definition, error) {
	if len(content.IsPathSegmentName(r.Name)) > 0 {
		return nil, &controller.UnknownError{What: r.APIVersion + " " + r.Kind}
	}
	return c.objects.Kind(ctx, r.APIVersion, r.Kind)
}

// remove deletes an object, unless its owner references have changed since its owners were looked
// up.
func (c *Controller) remove(ctx context.Context, d *resource.Definition, h *controller.Header, policy metav1.DeletionPropagation) error {
	uid, revision := types.UID(h.UID), fmt.Sprint(h.Revision)
	options := &metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &revision},
		PropagationPolicy: &policy,
	}
	err := c.objects.Delete(ctx, d, h.Key, options)
	if !status.Is(err, metav1.StatusReasonConflict) {
		return err
	}
	now, readErr := c.objects.Read(ctx, h.Key)
	switch {
	case readErr != nil:
		return readErr
	case now == nil || now.UID != h.UID:
		return nil
	case !equality.Semantic.DeepEqual(now.Owners, h.Owners):
		return err
	}
	// frequent writes must not keep the object alive
	options.Preconditions.ResourceVersion = nil
	return c.objects.Delete(ctx, d, h.Key, options)
}

// forget removes owner references of an object.
func (c *Controller) forget(ctx context.Context, d *resource.Definition, h *controller.Header, owners []types.UID) error {
	return c.objects.Change(ctx, d, h.Key, h.UID, "", func(t object.Tree) bool {
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

// unblock sets blockOwnerDeletion to false in all owner references of an object.
func (c *Controller) unblock(ctx context.Context, d *resource.Definition, h *controller.Header) error {
	changed := false
	err := c.objects.Change(ctx, d, h.Key, h.UID, "", func(t object.Tree) bool {
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
	now, err := c.objects.Read(ctx, h.Key)
	if err == nil && now != nil && now.UID == h.UID {
		*h = *now
	}
	return err
}
