// Package endpoint finds where a Service is answered: at the ready endpoints of
// its EndpointSlices, at the name outside that it stands for, or at an address
// that somebody else routes.
//
// It reads what is stored and keeps nothing. It does not connect to anything.
package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
	"github.com/anykind/anykind/internal/watchcache"
)

// A Resolver reads Services and EndpointSlices.
type Resolver struct {
	Cache *watchcache.Cache
	// Services and EndpointSlices are the kinds.
	Services, EndpointSlices *resource.Definition
}

// Resolve returns the addresses, host:port each, at which a port of a Service is
// answered now. There is at least one.
func (r *Resolver) Resolve(ctx context.Context, namespace, name string, port int32) ([]string, error) {
	if _, err := r.Cache.Fresh(ctx); err != nil {
		return nil, err
	}
	o, err := r.Cache.Resource(r.Services.StoragePrefix).Get(ctx, r.Services.Key(namespace, name))
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, status.NotFound(r.Services.GroupResource(), name)
	}
	var service corev1.Service
	if err := json.Unmarshal(o.JSON, &service); err != nil {
		return nil, fmt.Errorf("the stored service %s/%s cannot be read: %w", namespace, name, err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{join(service.Spec.ExternalName, port)}, nil
	}
	var of *corev1.ServicePort
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Port == port {
			of = &service.Spec.Ports[i]
			break
		}
	}
	if of == nil {
		return nil, status.Unavailable(fmt.Sprintf("no service port %d found for service %q", port, name))
	}
	addresses, sliced, err := r.endpoints(ctx, namespace, name, of.Name)
	switch ip := service.Spec.ClusterIP; {
	case err != nil:
		return nil, err
	case len(addresses) > 0:
		return addresses, nil
	case !sliced && ip != "" && ip != corev1.ClusterIPNone:
		// Nobody says what is behind the address, so whoever gave it routes it.
		return []string{join(ip, port)}, nil
	}
	return nil, status.Unavailable(fmt.Sprintf("no endpoints available for service %q", name))
}

// endpoints returns the addresses of the ready endpoints for the port of that
// name, and whether the service has EndpointSlices at all.
func (r *Resolver) endpoints(ctx context.Context, namespace, service, port string) (addresses []string, sliced bool, err error) {
	snapshot, err := r.Cache.Resource(r.EndpointSlices.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, false, err
	}
	for o := range snapshot.Scan(r.EndpointSlices.NamespacePrefix(namespace), "") {
		if o.Labels.Get(discoveryv1.LabelServiceName) != service || o.Err != nil {
			continue
		}
		sliced = true
		var slice discoveryv1.EndpointSlice
		if json.Unmarshal(o.JSON, &slice) != nil {
			continue
		}
		for _, p := range slice.Ports {
			if p.Name != nil && *p.Name == port && p.Port != nil {
				addresses = append(addresses, ready(slice.Endpoints, *p.Port)...)
			}
		}
	}
	return addresses, sliced, nil
}

// ready returns the addresses of those who say that they are ready, or nothing.
func ready(endpoints []discoveryv1.Endpoint, port int32) (addresses []string) {
	for _, e := range endpoints {
		if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
			addresses = append(addresses, join(e.Addresses[0], port)) // the others mean the same
		}
	}
	return addresses
}

func join(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
