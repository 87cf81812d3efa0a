// Package availability writes the condition Available of APIServices.
//
// A local APIService is always available. For a remote one, the Service must exist, with a port
// and endpoints, and the API server behind it must serve the version. The API server is probed
// when one of these objects changes, and every 30 seconds. Without a remote APIService nothing is
// probed and nothing runs.
package availability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is the name of the controller, as in kube-apiserver.
const Name = "apiservice-status-remote-available-controller"

const (
	group = "apiregistration.k8s.io"
	// again is the longest pause between two probes of an API server.
	again = 30 * time.Second
	// shortest is the pause after the first failure.
	shortest = 50 * time.Millisecond
)

// A Controller writes the conditions. The key of its tasks is the name of an APIService.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	others  *aggregate.Aggregator

	prefix, services, slices string // key prefixes

	mu sync.Mutex
	// remote are the APIServices that name a Service, by name.
	remote map[string]remote
	// failures counts consecutive failures of an API server.
	failures map[string]int
}

// New returns the constructor of the controller. others has the API servers to probe.
func New(others *aggregate.Aggregator) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{
			objects: o.ManagedBy(apply.Server), queue: q, others: others,
			prefix: o.Prefix(group, "apiservices"), services: o.Prefix("", "services"), slices: o.Prefix("discovery.k8s.io", "endpointslices"),
			remote: map[string]remote{}, failures: map[string]int{},
		}
	}
}

// Keys returns the key prefixes of APIServices, Services and EndpointSlices.
func (c *Controller) Keys() []string { return []string{c.prefix, c.services, c.slices} }

// Load forgets all APIServices.
func (c *Controller) Load() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.remote)
}

// Loaded implements controller.Controller. It has nothing to do: See saw every APIService.
func (c *Controller) Loaded() {}

// See queues the APIServices whose availability an event may change.
func (c *Controller) See(e *controller.Event) {
	if name, ok := strings.CutPrefix(e.Key, c.prefix); ok {
		c.seeAPIService(name, e.Value)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.remote) == 0 || e.Loading {
		return
	}
	of, ok := strings.CutPrefix(e.Key, c.services)
	if !ok {
		if of, ok = c.serviceOf(e); !ok {
			return
		}
	}
	for name, r := range c.remote {
		if r.service == of {
			c.queue.Add(controller.Task{Key: name})
		}
	}
}

// serviceOf returns the Service (NAMESPACE/NAME) of the EndpointSlice of an event.
func (c *Controller) serviceOf(e *controller.Event) (string, bool) {
	read := e.Now
	if e.Value == nil {
		read = e.Was
	}
	slice, err := read()
	if err != nil {
		return "", false
	}
	namespace, _, _ := strings.Cut(e.Key[len(c.slices):], "/")
	return namespace + "/" + slice.Labels.Get(discoveryv1.LabelServiceName), true
}

// seeAPIService records the Service of an APIService. A local one usually has its condition since
// it was created.
func (c *Controller) seeAPIService(name string, value []byte) {
	now := remote{}
	if bytes.Contains(value, []byte(`"service":`)) {
		var err error
		if now, err = readRemote(value); err != nil {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.remote[name]
	delete(c.remote, name)
	if now.service != "" {
		c.remote[name] = now
	}
	switch {
	case now != was:
		delete(c.failures, name)
	case now.service != "": // A change of the status: mostly by this controller.
		return
	}
	if now.service != "" || value != nil && !bytes.Contains(value, []byte(`"reason":"Local"`)) {
		c.queue.Add(controller.Task{Key: name})
	}
}

// A remote is the part of an APIService that concerns its Backend.
type remote struct {
	service string // NAMESPACE/NAME; "" if local
	spec    string // as stored
}

func readRemote(value []byte) (remote, error) {
	var t struct{ Spec json.RawMessage }
	if err := json.Unmarshal(value, &t); err != nil {
		return remote{}, err
	}
	var spec apiregistrationv1.APIServiceSpec
	if err := json.Unmarshal(t.Spec, &spec); err != nil || spec.Service == nil {
		return remote{}, err
	}
	return remote{spec.Service.Namespace + "/" + spec.Service.Name, string(t.Spec)}, nil
}

// Do tests whether an APIService is available, and writes the condition.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	d := c.objects.Lookup(group, "apiservices")
	if d == nil {
		return nil
	}
	key := d.Key("", t.Key)
	found, err := c.objects.Read(ctx, key)
	if err != nil || found == nil {
		return err
	}
	var service apiregistrationv1.APIService
	if err := json.Unmarshal(found.JSON, &service); err != nil {
		return nil // The condition reports the failure.
	}
	available, failed, err := c.condition(ctx, &service)
	if err != nil {
		return err
	}
	was := isAvailable(&service)
	err = c.objects.Change(ctx, d, key, found.UID, "status", func(t object.Tree) bool {
		return controller.SetConditions(t, object.Timestamp(c.objects.Now()), available)
	})
	if err != nil {
		return err
	}
	if was && !available.Status {
		c.others.Metrics().BecameUnavailable(t.Key, available.Reason)
	}
	if service.Spec.Service != nil {
		c.queue.After(t, c.after(t.Key, failed))
	}
	return nil
}

func isAvailable(s *apiregistrationv1.APIService) bool {
	return slices.ContainsFunc(s.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
		return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
	})
}

// after returns the pause until the next probe. After failures it grows from shortest to again.
func (c *Controller) after(name string, failed bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !failed {
		delete(c.failures, name)
		return again
	}
	n := c.failures[name]
	c.failures[name] = n + 1
	return min(shortest<<min(n, 20), again)
}

// condition returns the condition Available of an APIService, in Kubernetes' words. failed
// reports that the probe failed.
func (c *Controller) condition(ctx context.Context, s *apiregistrationv1.APIService) (is controller.Condition, failed bool, err error) {
	is.Type = string(apiregistrationv1.Available)
	of := s.Spec.Service
	if of == nil {
		is.Status, is.Reason, is.Message = true, "Local", "Local APIServices are always available"
		return is, false, nil
	}
	if is.Reason, is.Message, err = c.missing(ctx, of); err != nil || is.Reason != "" {
		return is, false, err
	}
	services, err := c.others.Fresh(ctx)
	if err != nil {
		return is, false, err
	}
	one := services.Lookup(s.Spec.Group, s.Spec.Version)
	if one == nil || one.Backend == nil {
		return is, true, nil // The APIService has changed, and will be seen again.
	}
	if err := one.Probe(ctx); err != nil {
		if ctx.Err() != nil {
			return is, false, ctx.Err()
		}
		is.Reason, is.Message = "FailedDiscoveryCheck", err.Error()
		return is, true, nil
	}
	is.Status, is.Reason, is.Message = true, "Passed", "all checks passed"
	return is, false, nil
}

// missing returns the reason and message if the Service, its port or its endpoints are missing.
// Of a Service of a type other than ClusterIP only the existence is checked.
func (c *Controller) missing(ctx context.Context, of *apiregistrationv1.ServiceReference) (reason, message string, err error) {
	found, err := c.objects.Read(ctx, c.services+of.Namespace+"/"+of.Name)
	if err != nil {
		return "", "", err
	}
	if found == nil {
		return "ServiceNotFound", fmt.Sprintf("service/%s in %q is not present", of.Name, of.Namespace), nil
	}
	var service corev1.Service
	if err := json.Unmarshal(found.JSON, &service); err != nil {
		return "", "", err
	}
	if service.Spec.Type != corev1.ServiceTypeClusterIP {
		return "", "", nil
	}
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *of.Port })
	if at < 0 {
		return "ServicePortError", fmt.Sprintf("service/%s in %q is not listening on port %d", of.Name, of.Namespace, *of.Port), nil
	}
	return c.missingEndpoints(ctx, of, service.Spec.Ports[at].Name)
}

func (c *Controller) missingEndpoints(ctx context.Context, of *apiregistrationv1.ServiceReference, port string) (reason, message string, err error) {
	any, ready := false, false
	err = c.objects.Pages(ctx, c.slices+of.Namespace+"/", func(page kv.Page) {
		for _, r := range page.Records {
			var slice discoveryv1.EndpointSlice
			if json.Unmarshal(r.Value, &slice) != nil || slice.Labels[discoveryv1.LabelServiceName] != of.Name {
				continue
			}
			any = true
			ready = ready || hasEndpoint(&slice, port)
		}
	})
	switch {
	case err != nil || ready:
		return "", "", err
	case !any:
		return "EndpointsNotFound", fmt.Sprintf("cannot find endpointslices for service/%s in %q", of.Name, of.Namespace), nil
	default:
		return "MissingEndpoints", fmt.Sprintf("endpointslices for service/%s in %q have no addresses with port name %q", of.Name, of.Namespace, port), nil
	}
}

// hasEndpoint reports whether a slice has the port and a ready endpoint.
func hasEndpoint(s *discoveryv1.EndpointSlice, port string) bool {
	return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }) &&
		slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return p.Name != nil && *p.Name == port && p.Port != nil })
}
