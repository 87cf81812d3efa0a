// Package definition finalizes a deleted CustomResourceDefinition: it deletes the objects of the
// kind and then removes its finalizer.
//
// The status of the definition shows the progress, with the messages of Kubernetes. Objects cannot
// be created meanwhile: every write of an object is guarded by the revision of the definition, and
// the current revision is being deleted.
//
// In a cluster each kube-apiserver does this. Here it is a controller, so only one of several
// servers does it.
package definition

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
)

// Name is the name of the controller. In Kubernetes --controllers cannot name it.
const Name = "customresourcedefinition-finalizing-controller"

// reportAfter is the time after which the status reports that objects of a deleted kind remain.
const reportAfter = time.Minute

// A Controller finalizes CustomResourceDefinitions. The key of its tasks is the name of a
// definition.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	prefix  string // key prefix of CustomResourceDefinitions
	// leftovers are the remaining objects of deleted kinds, which have finalizers, by their key
	// prefix. The note is the start of the wait.
	leftovers controller.Leftovers[time.Time]
}

// New returns the controller. Its field manager is that of the server, as for the whole status of a
// definition.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o.ManagedBy(apply.Server), queue: q, prefix: o.DefinitionPrefix()}
}

// Keys returns the prefix of all keys: objects of any kind may remain of a definition.
func (c *Controller) Keys() []string { return []string{""} }

var deleted = []byte(`deletionTimestamp"`)

// See queues a deleted definition, its later changes, and a definition whose last object is gone.
func (c *Controller) See(e *controller.Event) {
	if c.leftovers.Any() && !e.Loading {
		c.seeLeftover(e)
	}
	name, ok := strings.CutPrefix(e.Key, c.prefix)
	if !ok {
		return
	}
	if e.Value == nil {
		c.leftovers.Forget(objectsOf(name))
		return
	}
	if !bytes.Contains(e.Value, deleted) {
		return
	}
	now, err := e.Header()
	if err != nil || !isFinalizing(now) {
		return
	}
	if was, err := e.Was(); err == nil && was.Deleting && sameSpec(e.Value, e.Prev) {
		return // a later change of the status only
	}
	c.queue.Add(controller.Task{Key: name})
}

func sameSpec(a, b []byte) bool {
	one, err := object.Field(a, "spec")
	if err != nil {
		return false
	}
	other, err := object.Field(b, "spec")
	return err == nil && bytes.Equal(one, other)
}

func (c *Controller) seeLeftover(e *controller.Event) {
	prefix := prefixOf(e.Key)
	if _, none := c.leftovers.See(prefix, &e.Event); none {
		c.queue.Add(controller.Task{Key: nameOf(prefix)})
	}
}

// isFinalizing reports whether the objects of a definition remain to be deleted.
func isFinalizing(h *controller.Header) bool {
	return h.Deleting && h.Has(v1.CustomResourceCleanupFinalizer)
}

// Do finalizes a definition.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	d, err := c.objects.Definition(ctx, t.Key)
	if err != nil {
		return err
	}
	if d == nil || !isFinalizing(d.Header) {
		c.leftovers.Forget(objectsOf(t.Key))
		return nil
	}
	// The catalog now has the Definition that serves the kind, if any.
	if err := c.objects.Refresh(ctx); err != nil {
		return err
	}
	err = c.terminating(ctx, d, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	if err != nil {
		return err
	}
	switch {
	case !isEstablished(d):
		return c.terminated(ctx, d, "NeverEstablished", "resource was never established")
	case c.overlaps(d):
		return c.terminated(ctx, d, "OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
	}
	none, err := c.removeObjects(ctx, t, d)
	if err != nil || !none {
		return err
	}
	return c.terminated(ctx, d, "InstanceDeletionCompleted", "removed all instances")
}

func isEstablished(d *controller.Definition) bool {
	return slices.ContainsFunc(d.Object.Status.Conditions, func(c v1.CustomResourceDefinitionCondition) bool {
		return c.Type == v1.Established && c.Status == v1.ConditionTrue
	})
}

// overlaps reports whether the keys of a definition's objects are those of a built-in kind.
func (c *Controller) overlaps(d *controller.Definition) bool {
	prefix := objectsOf(d.Name)
	for other := range c.objects.Catalog.Set().All() {
		if other.UID == "" && other.StoragePrefix == prefix {
			return true
		}
	}
	return false
}

// terminating sets the condition Terminating with the progress of the deletion.
func (c *Controller) terminating(ctx context.Context, d *controller.Definition, reason, message string) error {
	return c.edit(ctx, d, func(t object.Tree) bool { return c.terminates(t, true, reason, message) })
}

// terminated records that no objects remain, and removes the finalizer. While other finalizers hold
// the definition the condition stays true: no objects can be created.
func (c *Controller) terminated(ctx context.Context, d *controller.Definition, reason, message string) error {
	c.leftovers.Forget(objectsOf(d.Name))
	return c.edit(ctx, d, func(t object.Tree) bool {
		rest := slices.DeleteFunc(object.Finalizers(t), func(f string) bool { return f == v1.CustomResourceCleanupFinalizer })
		object.SetFinalizers(t, rest)
		c.terminates(t, len(rest) > 0, reason, message)
		return true
	})
}

func (c *Controller) terminates(t object.Tree, is bool, reason, message string) bool {
	return controller.SetConditions(t, object.Timestamp(c.objects.Now()),
		controller.Condition{Type: string(v1.Terminating), Status: is, Reason: reason, Message: message})
}

func (c *Controller) edit(ctx context.Context, d *controller.Definition, edit func(object.Tree) bool) error {
	return c.objects.Change(ctx, d.Kind, d.Key, d.UID, "status", edit)
}

// failed records an error in the condition.
func (c *Controller) failed(ctx context.Context, d *controller.Definition, reason, doing string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return utilerrors.NewAggregate([]error{err, c.terminating(ctx, d, reason, fmt.Sprintf("%s: %v", doing, err))})
}

// objectsOf returns the key prefix of the objects of a definition named PLURAL.GROUP.
func objectsOf(name string) string {
	plural, group, _ := strings.Cut(name, ".")
	return resource.CustomPrefix(group, plural)
}

// nameOf returns the name of the definition with that key prefix.
func nameOf(prefix string) string {
	group, plural, _ := resource.SplitCustom(prefix)
	return plural + "." + group
}

// prefixOf returns the key prefix of a custom object's kind from the key of the object.
func prefixOf(key string) string {
	_, _, rest := resource.SplitCustom(key)
	return key[:len(key)-len(rest)]
}
