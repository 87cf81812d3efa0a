// Package endpoint resolves a Service to an address: that of a ready endpoint of its
// EndpointSlices, its external name, or, if so configured, its cluster IP. A cluster IP works
// only where kube-proxy or the like routes it.
//
// The package reads stored objects, keeps no state, and makes no connections.
package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Resolver reads Services and EndpointSlices.
type Resolver struct {
	Cache *watchcache.Cache
	// Services and EndpointSlices are the Definitions of these kinds.
	Services, EndpointSlices *resource.Definition
	// ClusterIPs resolves Services to their cluster IPs, where they have one.
	ClusterIPs bool
}

// Resolve returns the current addresses (host:port) of a Service. There is at least one.
func (r *Resolver) Resolve(ctx context.Context, s egress.Service) ([]string, error) {
	if err := r.fresh(ctx); err != nil {
		return nil, err
	}
	o, err := r.Cache.Resource(r.Services.StoragePrefix).Get(ctx, r.Services.Key(s.Namespace, s.Name))
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, status.NotFound(schema.GroupResource{Resource: "service"}, s.Name) // Kubernetes' message
	}
	var service corev1.Service
	data, err := o.JSON()
	if err == nil {
		err = json.Unmarshal(data, &service)
	}
	if err != nil {
		return nil, fmt.Errorf("the stored service %s/%s cannot be read: %w", s.Namespace, s.Name, err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{join(service.Spec.ExternalName, s.Port)}, nil
	}
	var of *corev1.ServicePort
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Port == s.Port {
			of = &service.Spec.Ports[i]
			break
		}
	}
	if of == nil {
		return nil, status.Unavailable(fmt.Sprintf("no service port %d found for service %q", s.Port, s.Name))
	}
	if r.ClusterIPs {
		return clusterIP(&service, s.Port)
	}
	addresses, err := r.endpoints(ctx, &service, of.Name)
	if err == nil && len(addresses) == 0 {
		err = status.Unavailable(fmt.Sprintf("no endpoints available for service %q", s.Name))
	}
	return addresses, err
}

// fresh waits until the cache has every write that was acknowledged before the request of ctx
// arrived. It asks the store for the revision at most once in each request.
func (r *Resolver) fresh(ctx context.Context) error {
	if q := request.From(ctx); q != nil && q.Began() != 0 {
		return r.Cache.Wait(ctx, q.Began())
	}
	_, err := r.Cache.Fresh(ctx)
	return err
}

// clusterIP returns the cluster IP of a Service, with the port.
func clusterIP(service *corev1.Service, port int32) ([]string, error) {
	if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		return []string{join(ip, port)}, nil
	}
	return nil, errors.New(`cannot route to service with ClusterIP "None"`) // Kubernetes' message
}

// endpoints returns the addresses of ready endpoints for a port. If the Service prefers an IP
// family that has endpoints, they are all of that family.
func (r *Resolver) endpoints(ctx context.Context, service *corev1.Service, port string) (addresses []string, err error) {
	snapshot, err := r.Cache.Resource(r.EndpointSlices.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	var preferred discoveryv1.AddressType
	if families := service.Spec.IPFamilies; len(families) > 0 {
		preferred = discoveryv1.AddressType(families[0])
	}
	var others []string
	for o := range snapshot.Scan(r.EndpointSlices.NamespacePrefix(service.Namespace), "") {
		if o.Labels().Get(discoveryv1.LabelServiceName) != service.Name || o.Err() != nil {
			continue
		}
		var slice discoveryv1.EndpointSlice
		data, err := o.JSON()
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(data, &slice) != nil {
			continue
		}
		into := &others
		if slice.AddressType == preferred {
			into = &addresses
		}
		for _, p := range slice.Ports {
			if p.Name != nil && *p.Name == port && p.Port != nil {
				*into = append(*into, ready(slice.Endpoints, *p.Port)...)
			}
		}
	}
	if len(addresses) == 0 {
		addresses = others
	}
	return addresses, nil
}

// ready returns the addresses of ready endpoints.
func ready(endpoints []discoveryv1.Endpoint, port int32) (addresses []string) {
	for _, e := range endpoints {
		if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
			addresses = append(addresses, join(e.Addresses[0], port)) // further addresses are interchangeable
		}
	}
	return addresses
}

func join(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
