package definition

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// deleters is the number of concurrent deletions of objects of a kind.
const deleters = 16

// removeObjects deletes all objects of a kind and reports whether none remain. Objects with
// finalizers may take any time. The task runs again when they are gone, or when reportAfter has
// passed.
func (c *Controller) removeObjects(ctx context.Context, t controller.Task, d *controller.Definition) (none bool, err error) {
	prefix := objectsOf(d.Name)
	since := c.leftovers.Begin(prefix)
	if err := c.deleteObjects(ctx, d, prefix); err != nil {
		c.leftovers.GiveUp(prefix)
		doing := "could not issue all deletes"
		if errors.Is(err, errNotServed) {
			doing = "could not list instances"
		}
		return false, c.failed(ctx, d, "InstanceDeletionFailed", doing, err)
	}
	left := map[string]int64{}
	err = c.objects.Pages(ctx, prefix, func(page kv.Page) {
		for i := range page.Records {
			left[page.Records[i].Key] = page.Revision
		}
	})
	if err != nil {
		c.leftovers.GiveUp(prefix)
		return false, c.failed(ctx, d, "InstanceDeletionFailed", "could not list instances", err)
	}
	if len(left) == 0 {
		return true, nil
	}
	now := c.objects.Now()
	if since.IsZero() {
		since = now
	}
	if now.Sub(since) >= reportAfter {
		c.leftovers.End(prefix, left, time.Time{})
		return false, c.failed(ctx, d, "InstanceDeletionCheck", "could not confirm zero CustomResources remaining", context.DeadlineExceeded)
	}
	if !c.leftovers.End(prefix, left, since) {
		c.queue.Add(t) // They are gone by now.
		return false, nil
	}
	c.queue.After(t, since.Add(reportAfter).Sub(now))
	return false, nil
}

// errNotServed is the reason why objects cannot be deleted.
var errNotServed = errors.New("the stored definition cannot be compiled")

// deleteObjects deletes every object of a kind, some concurrently.
func (c *Controller) deleteObjects(ctx context.Context, d *controller.Definition, prefix string) error {
	served := c.served(d)
	var mu sync.Mutex
	var errs []error
	failed := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	err := c.objects.Pages(ctx, prefix, func(page kv.Page) {
		if served == nil && len(page.Records) > 0 {
			failed(errNotServed)
			return
		}
		_ = controller.Each(ctx, deleters, page.Records, func(r kv.Record) error {
			err := c.deleteObject(ctx, d, served, r)
			if err != nil {
				failed(err)
			}
			return err
		})
	})
	// the aggregate removes duplicates
	return utilerrors.NewAggregate(append(errs, err))
}

func (c *Controller) deleteObject(ctx context.Context, d *controller.Definition, served *resource.Definition, r kv.Record) error {
	if h, err := controller.ReadHeader(r.Key, r.Value, r.Revision); err == nil && h.Deleting {
		return nil
	}
	for ; served != nil; served = c.served(d) {
		err := c.objects.Delete(ctx, served, r.Key, &metav1.DeleteOptions{})
		if !controller.IsStale(err) {
			return err
		}
		if err := c.objects.Refresh(ctx); err != nil {
			return err
		}
	}
	return nil // the definition is gone, and so are its objects
}

// served returns the Definition in force that was compiled from this definition and not from
// another of the same name, or nil.
func (c *Controller) served(d *controller.Definition) *resource.Definition {
	now := c.objects.Lookup(d.Object.Spec.Group, d.Object.Spec.Names.Plural)
	if now == nil || now.UID != d.UID {
		return nil
	}
	return now
}
