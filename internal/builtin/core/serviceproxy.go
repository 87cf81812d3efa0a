package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// A serviceVisit is the subresource proxy of services. It connects to one of the pods in the
// EndpointSlices of the service.
type serviceVisit struct {
	services, pods, slices *resource.Definition
	network                http.RoundTripper
}

func (v *serviceVisit) Connect(ctx context.Context, c resource.Connection) (http.Handler, error) {
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(c.Name)
	if !ok {
		return nil, status.BadRequest("invalid service request %q", c.Name)
	}
	if n, err := strconv.ParseInt(port, 10, 64); err == nil {
		if port, err = v.portName(ctx, c, name, n); err != nil {
			return nil, err
		}
	}
	all, err := c.Objects.List(ctx, v.slices, c.Namespace)
	if err != nil {
		return nil, err
	}
	var of []*discoveryv1.EndpointSlice
	for _, s := range all {
		if kind.Text(s, "metadata", "labels", discoveryv1.LabelServiceName) == name {
			of = append(of, kind.ValueOf[discoveryv1.EndpointSlice](s))
		}
	}
	// Slices are equivalent, except for their address family.
	rand.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	slices.SortStableFunc(of, func(a, b *discoveryv1.EndpointSlice) int { return family(a) - family(b) })
	for _, s := range of {
		if at := v.endpoint(ctx, c, s, port); at != "" {
			host, number, _ := net.SplitHostPort(at)
			return proxy.Page{To: proxy.At(scheme, host, number, c.Path), Transport: v.network}, nil
		}
	}
	return nil, status.Unavailable(fmt.Sprintf("no endpoints available for service %q", name))
}

func family(s *discoveryv1.EndpointSlice) int {
	if s.AddressType == discoveryv1.AddressTypeIPv4 {
		return 0
	}
	return 1
}

// portName returns the name of a port of a service, which EndpointSlices use as well.
func (v *serviceVisit) portName(ctx context.Context, c resource.Connection, name string, port int64) (string, error) {
	service, err := c.Objects.Get(ctx, v.services, c.Namespace, name)
	if err != nil {
		return "", err
	}
	for _, p := range kind.List(service, "spec", "ports") {
		if p, _ := p.(map[string]any); p["port"] == port {
			return kind.Text(p, "name"), nil
		}
	}
	return "", status.Unavailable(fmt.Sprintf("no service port %d found for service %q", port, name))
}

// endpoint returns the address of a ready pod in a slice, or "".
func (v *serviceVisit) endpoint(ctx context.Context, c resource.Connection, s *discoveryv1.EndpointSlice, port string) string {
	for _, p := range s.Ports {
		if p.Name == nil || *p.Name != port || p.Port == nil || len(s.Endpoints) == 0 {
			continue
		}
		first := rand.IntN(len(s.Endpoints))
		for i := range s.Endpoints {
			e := &s.Endpoints[(first+i)%len(s.Endpoints)]
			if (e.Conditions.Ready == nil || *e.Conditions.Ready) && v.isPod(ctx, c, e) {
				return net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port)))
			}
		}
	}
	return ""
}

// isPod reports whether an endpoint is a pod of the namespace with that address. An EndpointSlice
// must not redirect clients to other hosts.
func (v *serviceVisit) isPod(ctx context.Context, c resource.Connection, e *discoveryv1.Endpoint) bool {
	if e.TargetRef == nil || e.TargetRef.Namespace != c.Namespace || len(e.Addresses) == 0 || !proxy.Reachable(e.Addresses[0]) {
		return false
	}
	pod, err := c.Objects.Get(ctx, v.pods, c.Namespace, e.TargetRef.Name)
	if err != nil || object.Name(pod) == "" {
		return false
	}
	for _, ip := range kind.ValueOf[corev1.Pod](pod).Status.PodIPs {
		if ip.IP == e.Addresses[0] {
			return true
		}
	}
	return false
}
