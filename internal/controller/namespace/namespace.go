// Package namespace empties a deleted namespace and then removes its finalizer.
//
// It deletes the objects of all kinds in the namespace, and reports the remaining objects in the
// status. Then it waits for the events of their deletion. It knows namespaces and the metadata of
// objects.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is the name of the controller.
const Name = "namespace-controller"

// recountPause limits how often the remaining objects of a namespace are counted again.
const recountPause = 2 * time.Second

// othersPause is the interval at which objects of other servers are checked again. They may be
// deleted without an event.
const othersPause = 5 * time.Second

// A Controller empties namespaces. The key of its tasks is the name of a namespace.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	prefix  string // key prefix of namespaces
	// leftovers are the remaining objects of namespaces in deletion. The note has the kinds that
	// may have objects left, nil before the first look at all kinds.
	leftovers controller.Leftovers[map[schema.GroupResource]bool]
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o.For("namespace-controller"), queue: q, prefix: o.Prefix("", "namespaces")}
}

// Keys returns the prefix of all keys: a namespace may contain objects of any kind.
func (c *Controller) Keys() []string { return []string{""} }

// See queues a deleted namespace, and one whose remaining objects have changed.
func (c *Controller) See(e *controller.Event) {
	if c.leftovers.Any() && !e.Loading {
		c.seeLeftover(e)
	}
	name, ok := strings.CutPrefix(e.Key, c.prefix)
	if !ok {
		return
	}
	if e.Value == nil {
		c.leftovers.Forget(name)
		return
	}
	if now, err := e.Now(); err != nil || !now.Deleting {
		return
	}
	if was, err := e.Was(); err == nil && was.Deleting {
		return
	}
	c.queue.Add(controller.Task{Key: name})
}

func (c *Controller) seeLeftover(e *controller.Event) {
	name := controller.NamespaceOf(e.Key)
	switch changed, none := c.leftovers.See(name, &e.Event); {
	case none:
		c.queue.Add(controller.Task{Key: name})
	case changed:
		c.queue.After(controller.Task{Key: name}, recountPause)
	}
}

// Do deletes the objects of a namespace in deletion and, once it is empty, removes the finalizer.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	name := t.Key
	n, err := c.objects.Namespace(ctx, name)
	if err != nil {
		return err
	}
	if n == nil || !n.Deleting || len(n.Spec.Finalizers) == 0 {
		c.leftovers.Forget(name)
		return nil
	}
	found := c.empty(ctx, name)
	if ctx.Err() != nil {
		c.leftovers.GiveUp(name)
		return ctx.Err()
	}
	left := c.leftovers.End(name, found.keys, found.kinds)
	if err := c.showContent(ctx, n, found); err != nil {
		c.objects.Logger.Warn("the status of a namespace could not be written", "namespace", name, "error", err)
	}
	switch err := errors.Join(append(found.errs, found.unrefreshed)...); {
	case err != nil:
		return err
	case left:
		if !found.ends.IsZero() {
			c.queue.After(t, found.ends.Sub(c.objects.Now()))
		}
		if found.elsewhere {
			c.queue.After(t, othersPause)
		}
		return nil // an event will follow
	case len(found.keys) > 0:
		// The objects are gone by now, and the status must be updated.
		c.queue.Add(t)
		return nil
	}
	return c.finalize(ctx, n)
}

// finalize removes the finalizer kubernetes from a namespace.
func (c *Controller) finalize(ctx context.Context, n *controller.Namespace) error {
	return c.objects.Change(ctx, n.Kind, n.Key, n.UID, "finalize", func(t object.Tree) bool {
		spec, _ := t["spec"].(object.Tree)
		finalizers, _ := spec["finalizers"].([]any)
		left := slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool { return f == string(corev1.FinalizerKubernetes) })
		if len(left) == len(finalizers) {
			return false
		}
		spec["finalizers"] = left
		if len(left) == 0 {
			delete(spec, "finalizers")
		}
		return true
	})
}

// contents describes the remaining objects of a namespace after all deletions.
type contents struct {
	unrefreshed error                         // error if kinds may be missing
	errs        []error                       // one for each kind with a failed deletion
	kinds       map[schema.GroupResource]bool // that may have objects left
	keys        map[string]int64              // of the remaining objects, with their revisions
	counts      map[schema.GroupResource]int  // of the remaining objects
	finalizers  map[string]int                // of the remaining objects
	elsewhere   bool                          // objects of other servers remain
	ends        time.Time                     // the earliest end of a grace period
}

// empty deletes all objects of a namespace, and returns the remaining ones. A failure of one kind
// does not affect the others.
func (c *Controller) empty(ctx context.Context, name string) *contents {
	found := &contents{
		kinds: map[schema.GroupResource]bool{}, keys: map[string]int64{},
		counts: map[schema.GroupResource]int{}, finalizers: map[string]int{},
	}
	kinds := slices.Collect(maps.Keys(c.leftovers.Begin(name)))
	// Objects can have been created until the deletion of the namespace began. The catalog must
	// have all kinds of that time.
	found.unrefreshed = c.objects.Refresh(ctx)
	set := c.objects.Catalog.Set()
	if kinds == nil {
		for d := range set.All() {
			kinds = append(kinds, d.GroupResource())
		}
	}
	var all []*resource.Definition
	for _, kind := range kinds {
		all = append(all, set.Lookup(kind.Group, kind.Resource))
	}
	others, err := c.objects.OtherKinds(ctx)
	found.unrefreshed = errors.Join(found.unrefreshed, err)
	for _, d := range append(all, others...) {
		if d == nil || !d.Namespaced || ctx.Err() != nil {
			continue
		}
		if err := c.emptyKind(ctx, d, name, found); err != nil {
			found.errs = append(found.errs, err)
			found.kinds[d.GroupResource()] = true
		}
	}
	if found.unrefreshed != nil {
		found.kinds = nil
	}
	return found
}

func (c *Controller) emptyKind(ctx context.Context, d *resource.Definition, name string, found *contents) error {
	var failed error
	any := false
	err := c.objects.Pages(ctx, d.NamespacePrefix(name), func(page kv.Page) {
		any = any || len(page.Records) > 0
		err := controller.Each(ctx, controller.Parallel, page.Records, func(r kv.Record) error { return c.askToGo(ctx, d.Group, &r) })
		if err != nil {
			failed = err
		}
	})
	if err := errors.Join(err, failed); err != nil || !any {
		return err
	}
	return c.countLeft(ctx, d, name, found)
}

// askToGo deletes an object. Its dependents need no special care: they are deleted with the
// namespace, or collected later.
func (c *Controller) askToGo(ctx context.Context, group string, r *kv.Record) error {
	h, err := controller.ReadHeader(r.Key, r.Value, r.Revision)
	if err == nil && h.Deleting && !h.Has(metav1.FinalizerOrphanDependents) && !h.Has(metav1.FinalizerDeleteDependents) {
		return nil
	}
	background := metav1.DeletePropagationBackground
	err = c.objects.With(ctx, group, r.Key, func(d *resource.Definition) error {
		return c.objects.Delete(ctx, d, r.Key, &metav1.DeleteOptions{PropagationPolicy: &background})
	})
	if controller.IsUnknown(err) {
		return nil // the kind is gone, and so are its objects
	}
	return err
}

func (c *Controller) countLeft(ctx context.Context, d *resource.Definition, name string, found *contents) error {
	kind := d.GroupResource()
	held := false
	err := c.objects.Pages(ctx, d.NamespacePrefix(name), func(page kv.Page) {
		for i := range page.Records {
			r := &page.Records[i]
			found.kinds[kind] = true
			found.keys[r.Key] = page.Revision
			found.elsewhere = found.elsewhere || controller.IsOthers(r.Key)
			found.counts[kind]++
			h, err := controller.ReadHeader(r.Key, r.Value, r.Revision)
			if err != nil {
				continue
			}
			for _, f := range h.Finalizers {
				found.finalizers[f]++
				held = true
			}
			if h.Ends.After(c.objects.Now()) {
				held = true
				if found.ends.IsZero() || h.Ends.Before(found.ends) {
					found.ends = h.Ends
				}
			}
		}
	})
	if err != nil || held || found.counts[kind] == 0 {
		return err
	}
	return fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", name, kind.WithVersion(preferred(d)))
}

// preferred returns the preferred version of d.
func preferred(d *resource.Definition) string {
	for _, v := range d.Versions {
		if v.Served {
			return v.Name
		}
	}
	return d.StorageVersion().Name
}
