// Package namespace empties a deleted namespace and then removes its finalizer.
//
// It deletes the objects of all kinds in the namespace, and writes to its status what is left
// and why. Then it waits for the events that say that the rest is gone. It knows namespaces
// and the metadata of objects.
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

// Name is what the controller is called.
const Name = "namespace-controller"

// recountPause is how long changes to what is left in a namespace may add up
// before it is looked at again.
const recountPause = 2 * time.Second

// othersPause is after how long it is looked again at what another server has, which may go without
// anybody's being told.
const othersPause = 5 * time.Second

// A Controller empties namespaces. The key of its tasks is the name of one.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	prefix  string // of the keys of namespaces
	// leftovers are of the namespaces that are being emptied, with the kinds that
	// may have objects left: nil before the first look at all kinds.
	leftovers controller.Leftovers[map[schema.GroupResource]bool]
}

// New makes the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o.For("namespace-controller"), queue: q, prefix: o.Prefix("", "namespaces")}
}

// Keys returns all, for objects of any kind may be left in a namespace.
func (c *Controller) Keys() []string { return []string{""} }

// See notices that a namespace was deleted, and that less is left in one.
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

// Do deletes what is in a namespace that is being deleted and, once nothing is
// left, lets the namespace go.
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
		return nil // what becomes of it will be seen
	case len(found.keys) > 0:
		// It has gone meanwhile, and the status is to say so.
		c.queue.Add(t)
		return nil
	}
	return c.finalize(ctx, n)
}

// finalize takes our finalizer from a namespace.
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

// contents is what a namespace was found to have after all was asked to go.
type contents struct {
	unrefreshed error                         // why perhaps not all kinds were looked at
	errs        []error                       // one for each kind that could not be deleted
	kinds       map[schema.GroupResource]bool // that may have objects left
	keys        map[string]int64              // of the objects left, and the revision they were seen at
	counts      map[schema.GroupResource]int  // of the objects left
	finalizers  map[string]int                // of the objects left
	elsewhere   bool                          // some of the objects left are of other servers
	ends        time.Time                     // when the first of those that have time to end is to be gone
}

// empty asks all objects in a namespace to go, and returns what is left. A kind
// that cannot be deleted does not keep the others from being deleted.
func (c *Controller) empty(ctx context.Context, name string) *contents {
	found := &contents{
		kinds: map[schema.GroupResource]bool{}, keys: map[string]int64{},
		counts: map[schema.GroupResource]int{}, finalizers: map[string]int{},
	}
	kinds := slices.Collect(maps.Keys(c.leftovers.Begin(name)))
	// Objects may have been created until the namespace was marked, which has
	// been read: what is served after that is all there can be.
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

// askToGo deletes an object as one whose dependents need not be thought of: they
// are asked to go as well, or will be collected.
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
		return nil // The kind is gone, and nothing of it can be left.
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

// preferred is the version that clients prefer.
func preferred(d *resource.Definition) string {
	for _, v := range d.Versions {
		if v.Served {
			return v.Name
		}
	}
	return d.StorageVersion().Name
}
