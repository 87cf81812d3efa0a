package garbage

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// await removes the finalizer of a foreground deletion once no blocking dependents remain.
func (c *Controller) await(ctx context.Context, t controller.Task) error {
	if waits, blocked := c.owners.waits(t.UID); !waits || blocked {
		return nil
	}
	return c.release(ctx, t, metav1.FinalizerDeleteDependents)
}

// orphan removes the owner reference from all dependents of an object, and then its finalizer.
func (c *Controller) orphan(ctx context.Context, t controller.Task) error {
	h, err := c.objects.Read(ctx, t.Key)
	if err != nil || h == nil || h.UID != t.UID || !h.Deleting || !h.Has(metav1.FinalizerOrphanDependents) {
		return err
	}
	err = controller.Each(ctx, controller.Parallel, c.owners.dependents(t.UID), func(n *node) error {
		h, err := c.objects.Read(ctx, n.key)
		if err != nil || h == nil || h.UID != n.uid {
			return err
		}
		err = c.objects.With(ctx, h.Group(), h.Key, func(d *resource.Definition) error {
			return c.forget(ctx, d, h, []types.UID{types.UID(t.UID)})
		})
		if controller.IsUnknown(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.release(ctx, t, metav1.FinalizerOrphanDependents)
}

// release removes a finalizer of an object.
func (c *Controller) release(ctx context.Context, t controller.Task, finalizer string) error {
	h, err := c.objects.Read(ctx, t.Key)
	if err != nil || h == nil || h.UID != t.UID || !h.Has(finalizer) {
		return err
	}
	return c.objects.With(ctx, h.Group(), h.Key, func(d *resource.Definition) error {
		return c.objects.Change(ctx, d, h.Key, h.UID, "", func(t object.Tree) bool {
			was := object.Finalizers(t)
			now := slices.DeleteFunc(slices.Clone(was), func(f string) bool { return f == finalizer })
			object.SetFinalizers(t, now)
			return len(now) != len(was)
		})
	})
}
