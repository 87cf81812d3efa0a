// Package servicerepair makes IPAddresses and the record of node ports consistent with Services,
// and creates warning Events about problems that it cannot repair.
//
// A Service and its IPAddresses are written together. So repairs are only needed after writes of
// another program, a deletion of an IPAddress, or for Services stored by an earlier version.
package servicerepair

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
)

// Name is the name of the controller.
const Name = "service-ip-repair-controller"

// The source components of Events, as in Kubernetes.
const (
	addressReporter = "ipallocator-repair-controller"
	portReporter    = "portallocator-repair-controller"
)

// leakGrace is the time before an unused node port is released. A kube-apiserver over the same
// store allocates it before it stores the Service.
const leakGrace = 9 * time.Minute

// The tasks, with the meaning of Key.
const (
	checkService = "service" // its key
	checkAddress = "address" // the address
	checkPorts   = "ports"   // empty
)

// A Controller repairs addresses and ports of Services.
type Controller struct {
	objects             *controller.Objects
	queue               *controller.Queue
	addresses           *allocation.Allocator
	services, addressed string              // key prefixes
	leaks               map[int32]time.Time // unused ports, with the time of detection
}

// New returns the constructor of the controller.
func New(a *allocation.Allocator) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{
			objects: o.ManagedBy(apply.Server), queue: q, addresses: a,
			services: o.Prefix("", "services"), addressed: o.Prefix(networkingv1.GroupName, "ipaddresses"),
		}
	}
}

// Keys returns the key prefixes of Services and IPAddresses, and the key of the port record.
func (c *Controller) Keys() []string {
	return []string{c.services, c.addressed, resource.RangesPrefix}
}

// Load does nothing; a Loader needs it.
func (c *Controller) Load() {}

// Loaded queues a comparison of the port record with all Services.
func (c *Controller) Loaded() { c.queue.Add(controller.Task{Do: checkPorts}) }

// See queues a written Service or IPAddress. After a deletion it queues the objects that may be
// affected.
func (c *Controller) See(e *controller.Event) {
	ip, isAddress := strings.CutPrefix(e.Key, c.addressed)
	switch {
	case e.Key == resource.NodePortsKey && e.Value == nil:
		c.queue.Add(controller.Task{Do: checkPorts})
	case isAddress && e.Value != nil:
		c.queue.Add(controller.Task{Do: checkAddress, Key: ip})
	case isAddress:
		if of, ok := c.ownerOf(e.Prev); ok {
			c.queue.Add(controller.Task{Do: checkService, Key: of})
		}
	case !strings.HasPrefix(e.Key, c.services):
	case e.Value != nil:
		c.queue.Add(controller.Task{Do: checkService, Key: e.Key})
	default:
		var s corev1.Service
		_ = json.Unmarshal(e.Prev, &s) // an unreadable Service has no addresses
		for _, ip := range allocation.Holds(&s).Addresses {
			c.queue.Add(controller.Task{Do: checkAddress, Key: ip})
		}
	}
}

// ownerOf returns the key of the parent Service of a stored IPAddress.
func (c *Controller) ownerOf(value []byte) (key string, ok bool) {
	var address networkingv1.IPAddress
	if json.Unmarshal(value, &address) != nil || !isOfService(&address) {
		return "", false
	}
	ref := address.Spec.ParentRef
	return c.services + ref.Namespace + "/" + ref.Name, true
}

func isOfService(a *networkingv1.IPAddress) bool {
	ref := a.Spec.ParentRef
	return ref != nil && ref.Group == "" && ref.Resource == "services"
}

// Do does a task.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	switch t.Do {
	case checkService:
		return c.checkService(ctx, t.Key)
	case checkAddress:
		return c.checkAddress(ctx, t)
	default:
		return c.checkPorts(ctx)
	}
}

// read decodes the object at a key. It returns nil if the object does not exist or is unreadable.
func (c *Controller) read(ctx context.Context, key string, into any) (*controller.Header, error) {
	found, err := c.objects.Read(ctx, key)
	if err != nil || found == nil || json.Unmarshal(found.JSON, into) != nil {
		return nil, err
	}
	return found, nil
}

// A portFault is a node port of a Service with its fault.
type portFault struct {
	service *corev1.Service
	port    int32
	fault   allocation.PortFault
}

// portWarnings are the Events for each fault.
var portWarnings = map[allocation.PortFault]struct{ reason, format string }{
	allocation.PortNotRecorded: {"PortNotAllocated", "Port %d is not allocated; repairing"},
	allocation.PortShared:      {"PortAlreadyAllocated", "Port %d was assigned to multiple services; please recreate service"},
	allocation.PortOutside:     {"PortOutOfRange", "Port %d is not within the port range; please recreate service"},
}

// checkPorts makes the port record consistent with the Services.
//
// A write of a Service between the two reads can look like a fault. It also changes the record, so
// the repair fails with a conflict, the task runs again, and there is no warning.
func (c *Controller) checkPorts(ctx context.Context) error {
	var faults []portFault
	audit, err := c.addresses.AuditPorts(ctx, func(s *corev1.Service, port int32, fault allocation.PortFault) {
		faults = append(faults, portFault{s, port, fault})
	})
	if err != nil {
		return err
	}
	w, wrong, err := audit.Repair(c.keptLeaks(audit.Leaked))
	if err == nil && wrong {
		_, err = c.objects.Backend.Commit(ctx, w)
	}
	if err != nil {
		return err
	}
	for _, f := range faults {
		c.warnOfPort(ctx, f)
	}
	return nil
}

// warnOfPort creates an Event about a Service that still exists.
func (c *Controller) warnOfPort(ctx context.Context, f portFault) {
	d, w := c.objects.Lookup("", "services"), portWarnings[f.fault]
	about, err := c.objects.Read(ctx, d.Key(f.service.Namespace, f.service.Name))
	if err != nil || about == nil {
		return
	}
	c.objects.Warn(ctx, d, about, controller.Warning{Reporter: portReporter, Reason: w.reason, Action: "PortAllocation", Note: fmt.Sprintf(w.format, f.port)})
}

// keptLeaks returns the ports that leaked recently, and schedules another check of them.
func (c *Controller) keptLeaks(leaked []int32) (keep []int32) {
	now, known := c.objects.Now(), c.leaks
	c.leaks = nil
	for _, port := range leaked {
		since, ok := known[port]
		if !ok {
			since = now
		}
		if now.Sub(since) >= leakGrace {
			continue
		}
		if c.leaks == nil {
			c.leaks = map[int32]time.Time{}
		}
		c.leaks[port] = since
		keep = append(keep, port)
	}
	if len(keep) > 0 {
		c.queue.After(controller.Task{Do: checkPorts}, leakGrace)
	}
	return keep
}
