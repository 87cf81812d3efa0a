// Package servicerepair brings IPAddresses and the record of node ports in line with what
// Services have, and warns of what it cannot repair.
//
// A Service and its IPAddresses are written together, so there is nothing to do unless
// others wrote to the store, somebody deleted an IPAddress, or an earlier version stored the
// Service.
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

// Name is what the controller is called.
const Name = "service-ip-repair-controller"

// The components that Events name as their source, as in Kubernetes.
const (
	addressReporter = "ipallocator-repair-controller"
	portReporter    = "portallocator-repair-controller"
)

// leakGrace is how long a node port is kept that no Service has: a kube-apiserver over the
// same store takes it before it stores the Service.
const leakGrace = 9 * time.Minute

// What a task does, and what its Key is.
const (
	checkService = "service" // its key
	checkAddress = "address" // the address
	checkPorts   = "ports"   // nothing
)

// A Controller repairs.
type Controller struct {
	objects             *controller.Objects
	queue               *controller.Queue
	addresses           *allocation.Allocator
	services, addressed string              // prefixes of keys
	leaks               map[int32]time.Time // ports, and since when; only the task of the ports looks at them
}

// New returns what makes the controller.
func New(a *allocation.Allocator) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{
			objects: o.ManagedBy(apply.Server), queue: q, addresses: a,
			services: o.Prefix("", "services"), addressed: o.Prefix(networkingv1.GroupName, "ipaddresses"),
		}
	}
}

// Keys returns those of Services, IPAddresses and the record of ports.
func (c *Controller) Keys() []string {
	return []string{c.services, c.addressed, resource.RangesPrefix}
}

// Load is there for Loaded.
func (c *Controller) Load() {}

// Loaded has the record of ports compared with all Services.
func (c *Controller) Loaded() { c.queue.Add(controller.Task{Do: checkPorts}) }

// See adds what was written to the tasks, and who may be concerned by what was deleted.
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
		_ = json.Unmarshal(e.Prev, &s) // what cannot be read has nothing
		for _, ip := range allocation.Holds(&s).Addresses {
			c.queue.Add(controller.Task{Do: checkAddress, Key: ip})
		}
	}
}

// ownerOf returns the key of the Service that a stored IPAddress is of.
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

// read reads what is stored at a key into an object. It returns nil if there is nothing, or
// nothing that can be read.
func (c *Controller) read(ctx context.Context, key string, into any) (*controller.Header, error) {
	found, err := c.objects.Read(ctx, key)
	if err != nil || found == nil || json.Unmarshal(found.JSON, into) != nil {
		return nil, err
	}
	return found, nil
}

// A portFault is a node port of a Service, and the fault of it.
type portFault struct {
	service *corev1.Service
	port    int32
	fault   allocation.PortFault
}

// portWarnings are the Events about each fault.
var portWarnings = map[allocation.PortFault]struct{ reason, format string }{
	allocation.PortNotRecorded: {"PortNotAllocated", "Port %d is not allocated; repairing"},
	allocation.PortShared:      {"PortAlreadyAllocated", "Port %d was assigned to multiple services; please recreate service"},
	allocation.PortOutside:     {"PortOutOfRange", "Port %d is not within the port range; please recreate service"},
}

// checkPorts brings the record of ports in line with the Services.
//
// A write of a Service between the two reads makes a fault that does not exist. It also moves the
// record, so the repair fails with a conflict, the task runs again, and nothing is warned of.
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

// warnOfPort writes an Event about a Service that still exists.
func (c *Controller) warnOfPort(ctx context.Context, f portFault) {
	d, w := c.objects.Lookup("", "services"), portWarnings[f.fault]
	about, err := c.objects.Read(ctx, d.Key(f.service.Namespace, f.service.Name))
	if err != nil || about == nil {
		return
	}
	c.objects.Warn(ctx, d, about, controller.Warning{Reporter: portReporter, Reason: w.reason, Action: "PortAllocation", Note: fmt.Sprintf(w.format, f.port)})
}

// keptLeaks returns the ports that leaked not long ago, and comes back to them.
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
