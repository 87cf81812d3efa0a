// Package kubernetesservice maintains the Service kubernetes in the namespace default, by which
// clients find the API servers, and its Endpoints and EndpointSlice.
//
// They have the address of this server or, if servers share the store, the addresses of all servers
// with a current lease.
package kubernetesservice

import (
	"context"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
)

// Name is the name of the controller.
const Name = "kubernetes-service-controller"

// Default is the name of the Service, its Endpoints and its EndpointSlice.
const Default = "kubernetes"

const (
	namespace = metav1.NamespaceDefault
	portName  = "https"
	port      = int64(443)
)

// A Server has the addresses of this server.
type Server struct {
	// CIDRs are the ranges of cluster IPs. The Service gets the first address.
	CIDRs []netip.Prefix
	// Address is the address at which clients reach the server.
	Address netip.AddrPort
	// Leases is true if servers share the store and have leases.
	Leases bool
	// Reconcile maintains the endpoints.
	Reconcile bool
}

// Service returns the Service as created.
func (s *Server) Service() object.Tree {
	return object.Tree{
		"metadata": object.Tree{
			"name": Default, "namespace": namespace,
			"labels": object.Tree{"component": "apiserver", "provider": "kubernetes"},
		},
		"spec": object.Tree{
			"clusterIP": s.CIDRs[0].Masked().Addr().Next().String(), "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "type": "ClusterIP",
			"ports": []any{object.Tree{"name": portName, "port": port, "protocol": "TCP", "targetPort": int64(s.Address.Port())}},
		},
	}
}

// A Controller maintains the objects.
type Controller struct {
	objects                   *controller.Objects
	queue                     *controller.Queue
	server                    Server
	service, endpoints, slice string // keys
}

// The tasks.
var (
	keepService   = controller.Task{Do: "service"}
	keepEndpoints = controller.Task{Do: "endpoints"}
)

// New returns the constructor of the controller for a server.
func New(s Server) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{
			objects: o.ManagedBy(apply.Server), queue: q, server: s,
			service:   o.Prefix("", "services") + namespace + "/" + Default,
			endpoints: o.Prefix("", "endpoints") + namespace + "/" + Default,
			slice:     o.Prefix("discovery.k8s.io", "endpointslices") + namespace + "/" + Default,
		}
	}
}

// Keys returns the keys of the objects and the key prefix of the leases.
func (c *Controller) Keys() []string {
	return []string{c.service, c.endpoints, c.slice, resource.MasterLeasesPrefix}
}

// Load does nothing; a Loader needs it.
func (c *Controller) Load() {}

// Loaded queues all tasks: a missing object has no event.
func (c *Controller) Loaded() { c.queue.Add(keepService, keepEndpoints) }

// See queues the tasks after a change of one of the objects, and after a lease appears or ends. A
// renewed lease changes nothing.
func (c *Controller) See(e *controller.Event) {
	switch lease := strings.HasPrefix(e.Key, resource.MasterLeasesPrefix); {
	case e.Loading:
	case e.Key == c.service:
		c.queue.Add(keepService)
	case e.Key == c.endpoints, e.Key == c.slice, lease && (e.Value == nil || e.Prev == nil):
		c.queue.Add(keepEndpoints)
	}
}

// Do creates or updates the objects.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	return c.objects.InNamespace(ctx, namespace, func() error {
		switch {
		case t == keepService:
			return c.keepService(ctx)
		case c.server.Reconcile:
			return c.keepEndpoints(ctx)
		}
		return nil
	})
}

// keepService creates the Service if it does not exist. It keeps changes of users.
func (c *Controller) keepService(ctx context.Context) error {
	found, err := c.objects.Read(ctx, c.service)
	if err != nil || found != nil {
		return err
	}
	d, t := c.objects.Lookup("", "services"), c.server.Service()
	d.StorageVersion().Schema.Default(t)
	return c.objects.Create(ctx, d, namespace, t)
}
