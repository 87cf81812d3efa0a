// Package serviceaccount creates the ServiceAccount default in every namespace, and creates it
// again when it is deleted.
package serviceaccount

import (
	"context"
	"strings"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
)

// Name is the name of the controller.
const Name = "serviceaccount-controller"

// Default is the name of the ServiceAccount in every namespace.
const Default = "default"

// A Controller creates ServiceAccounts. The key of its tasks is the name of a namespace.
type Controller struct {
	objects              *controller.Objects
	queue                *controller.Queue
	namespaces, accounts string // key prefixes
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o, queue: q, namespaces: o.Prefix("", "namespaces"), accounts: o.Prefix("", "serviceaccounts")}
}

// Keys returns the key prefixes of namespaces and ServiceAccounts.
func (c *Controller) Keys() []string { return []string{c.namespaces, c.accounts} }

// See queues a namespace that may lack the ServiceAccount.
func (c *Controller) See(e *controller.Event) {
	if name := e.ActiveNamespace(c.namespaces); name != "" {
		c.queue.Add(controller.Task{Key: name})
	}
	if e.Value == nil && strings.HasPrefix(e.Key, c.accounts) && strings.HasSuffix(e.Key, "/"+Default) {
		c.queue.Add(controller.Task{Key: controller.NamespaceOf(e.Key)})
	}
}

// Do creates the ServiceAccount of a namespace if it is missing.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	return c.objects.InNamespace(ctx, t.Key, func() error {
		d := c.objects.Lookup("", "serviceaccounts")
		found, err := c.objects.Read(ctx, d.Key(t.Key, Default))
		if err != nil || found != nil {
			return err
		}
		return c.objects.Create(ctx, d, t.Key, object.Tree{"metadata": object.Tree{"name": Default, "namespace": t.Key}})
	})
}
