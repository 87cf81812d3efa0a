// Package servicecidr creates the ServiceCIDR kubernetes with the ranges of the server's flags,
// sets it ready, and creates it again when it is deleted.
package servicecidr

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
)

// Name is the name of the controller, and its field manager.
const Name = "kubernetes-service-cidr-controller"

// Default is the name of the ServiceCIDR.
const Default = "kubernetes"

// Object returns a new ServiceCIDR with the ranges.
func Object(cidrs []netip.Prefix) object.Tree {
	return object.Tree{"metadata": object.Tree{"name": Default}, "spec": object.Tree{"cidrs": list(cidrs)}}
}

func list(cidrs []netip.Prefix) (out []any) {
	for _, p := range cidrs {
		out = append(out, p.String())
	}
	return out
}

// A Controller maintains the ServiceCIDR. It has one task.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	prefix  string // key prefix of ServiceCIDRs
	cidrs   []netip.Prefix
	warned  bool // about other ranges in the ServiceCIDR; only the task uses it
}

// New returns the constructor of the controller for ranges.
func New(cidrs []netip.Prefix) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{objects: o.ManagedBy(Name), queue: q, prefix: o.Prefix(networkingv1.GroupName, "servicecidrs"), cidrs: cidrs}
	}
}

// Keys returns the key prefix of ServiceCIDRs.
func (c *Controller) Keys() []string { return []string{c.prefix} }

// Load does nothing; a Loader needs it.
func (c *Controller) Load() {}

// Loaded queues the task: a missing ServiceCIDR has no event.
func (c *Controller) Loaded() { c.queue.Add(controller.Task{}) }

// See queues the task after the ServiceCIDR was changed or deleted.
func (c *Controller) See(e *controller.Event) {
	if e.Key == c.prefix+Default && !e.Loading {
		c.queue.Add(controller.Task{})
	}
}

// Do creates or updates the ServiceCIDR.
func (c *Controller) Do(ctx context.Context, _ controller.Task) error {
	d := c.objects.Lookup(networkingv1.GroupName, "servicecidrs")
	key := d.Key("", Default)
	found, err := c.objects.Read(ctx, key)
	switch {
	case err != nil:
		return err
	case found == nil:
		return c.objects.Create(ctx, d, "", Object(c.cidrs)) // its event queues the next step
	case found.Deleting:
		return nil // a controller manager finalizes it
	}
	other := ""
	err = c.objects.Change(ctx, d, key, found.UID, "", func(t object.Tree) bool {
		switch has, want := kind.Texts(t, "spec", "cidrs"), kind.Texts(Object(c.cidrs), "spec", "cidrs"); {
		case slices.Equal(has, want):
			return false
		case len(has) == 1 && len(want) == 2 && has[0] == want[0]:
			t["spec"] = object.Tree{"cidrs": list(c.cidrs)}
			return true
		default:
			other = fmt.Sprintf("The default ServiceCIDR %v does not match the controller flag configurations %s", has, want)
			return false
		}
	})
	if err != nil {
		return err
	}
	if other != "" {
		c.warn(ctx, found, other)
		return nil
	}
	return c.objects.Apply(ctx, d, key, found.UID, "status", c.ready)
}

// ready returns the status of a ready ServiceCIDR, or nil if it already has the condition.
func (c *Controller) ready(t object.Tree) object.Tree {
	for _, one := range kind.List(t, "status", "conditions") {
		condition, _ := one.(object.Tree)
		if kind.Text(condition, "type") == networkingv1.ServiceCIDRConditionReady && kind.Text(condition, "status") != string(metav1.ConditionUnknown) {
			return nil
		}
	}
	return object.Tree{"status": object.Tree{"conditions": []any{object.Tree{
		"type": networkingv1.ServiceCIDRConditionReady, "status": string(metav1.ConditionTrue),
		"message": "Kubernetes default Service CIDR is ready", "lastTransitionTime": object.Timestamp(c.objects.Now()),
	}}}}
}

func (c *Controller) warn(ctx context.Context, about *controller.Header, note string) {
	if c.warned {
		return
	}
	c.warned = true
	c.objects.Warn(ctx, c.objects.Lookup(networkingv1.GroupName, "servicecidrs"), about, controller.Warning{
		Reporter: Name, Reason: "KubernetesDefaultServiceCIDRInconsistent", Action: "ServiceCIDRValidation", Note: note,
	})
}
