// Package kubernetesservice keeps the Service kubernetes in the namespace default, by which
// clients find the API servers, and its Endpoints and EndpointSlice.
//
// They have the address of this server, or those of all servers that say, under the keys of
// their leases, that they share the store and are alive.
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

// Name is what the controller is called.
const Name = "kubernetes-service-controller"

// Default is the name of the Service, its Endpoints and its EndpointSlice.
const Default = "kubernetes"

const (
	namespace = metav1.NamespaceDefault
	portName  = "https"
	port      = int64(443)
)

// A Server is how this server is found.
type Server struct {
	// CIDRs are the ranges of cluster IPs. The Service has the first address.
	CIDRs []netip.Prefix
	// Address is where others reach the server.
	Address netip.AddrPort
	// Leases says that servers share the store and have leases.
	Leases bool
	// Reconcile says that the endpoints are kept.
	Reconcile bool
}

// Service is the Service as it is created.
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

// A Controller keeps the objects.
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

// New returns what makes the controller of a server.
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

// Keys returns those of the objects and of the leases.
func (c *Controller) Keys() []string {
	return []string{c.service, c.endpoints, c.slice, resource.MasterLeasesPrefix}
}

// Load is there for Loaded.
func (c *Controller) Load() {}

// Loaded has all looked at: what is missing is not seen.
func (c *Controller) Loaded() { c.queue.Add(keepService, keepEndpoints) }

// See notices that one of the objects was changed or deleted, and that a server came or
// went. That one is still there is no news.
func (c *Controller) See(e *controller.Event) {
	switch lease := strings.HasPrefix(e.Key, resource.MasterLeasesPrefix); {
	case e.Loading:
	case e.Key == c.service:
		c.queue.Add(keepService)
	case e.Key == c.endpoints, e.Key == c.slice, lease && (e.Value == nil || e.Prev == nil):
		c.queue.Add(keepEndpoints)
	}
}

// Do makes the objects what they are to be.
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

// keepService creates the Service if there is none. Whoever changes it knows why.
func (c *Controller) keepService(ctx context.Context) error {
	found, err := c.objects.Read(ctx, c.service)
	if err != nil || found != nil {
		return err
	}
	d, t := c.objects.Lookup("", "services"), c.server.Service()
	d.StorageVersion().Schema.Default(t)
	return c.objects.Create(ctx, d, namespace, t)
}
