package kubernetesservice

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// keepEndpoints updates the Endpoints and the EndpointSlice to the addresses of the servers.
func (c *Controller) keepEndpoints(ctx context.Context) error {
	servers := []netip.Addr{c.server.Address.Addr()}
	if c.server.Leases {
		var err error
		if servers, err = c.leased(ctx); err != nil || len(servers) == 0 {
			return err // the first lease is about to be written
		}
	}
	ports, err := c.writeEndpoints(ctx, servers)
	if err != nil {
		return err
	}
	return c.writeSlice(ctx, servers, ports)
}

// leased returns the addresses of the servers with a lease.
func (c *Controller) leased(ctx context.Context) (servers []netip.Addr, err error) {
	err = c.objects.Pages(ctx, resource.MasterLeasesPrefix, func(page kv.Page) {
		for _, r := range page.Records {
			//lint:ignore SA1019 a lease is one, in Kubernetes
			var lease corev1.Endpoints
			if json.Unmarshal(r.Value, &lease) != nil || len(lease.Subsets) == 0 || len(lease.Subsets[0].Addresses) == 0 {
				continue
			}
			if ip, err := netip.ParseAddr(lease.Subsets[0].Addresses[0].IP); err == nil {
				servers = append(servers, ip.Unmap())
			}
		}
	})
	order.Stable(servers, netip.Addr.Compare)
	return slices.Compact(servers), err
}

// writeEndpoints returns the ports of the Endpoints. It leaves existing ports unchanged: servers
// that share a store have the same port.
func (c *Controller) writeEndpoints(ctx context.Context, servers []netip.Addr) (ports []any, err error) {
	ports = []any{object.Tree{"name": portName, "port": int64(c.server.Address.Port()), "protocol": "TCP"}}
	var addresses []any
	for _, ip := range servers {
		addresses = append(addresses, object.Tree{"ip": ip.String()})
	}
	edit := func(t object.Tree) bool {
		subsets := kind.List(t, "subsets")
		if len(subsets) == 1 && c.server.Leases {
			subset, _ := subsets[0].(object.Tree)
			if has := kind.List(subset, "ports"); len(has) > 0 {
				ports, _ = object.Clone(has).([]any)
			}
		}
		want := []any{object.Tree{"addresses": addresses, "ports": ports}}
		labels := kind.Child(object.Metadata(t), "labels")
		if object.Equal(any(subsets), any(want)) && labels[discoveryv1.LabelSkipMirror] == "true" {
			return false
		}
		labels[discoveryv1.LabelSkipMirror] = "true"
		t["subsets"] = want
		return true
	}
	return ports, c.write(ctx, c.endpoints, c.objects.Lookup("", "endpoints"), edit)
}

func (c *Controller) writeSlice(ctx context.Context, servers []netip.Addr, ports []any) error {
	six := !slices.ContainsFunc(servers, netip.Addr.Is4)
	addressType := discoveryv1.AddressTypeIPv4
	if six {
		addressType = discoveryv1.AddressTypeIPv6
	}
	var endpoints []any
	for _, ip := range servers {
		if ip.Is4() != six {
			endpoints = append(endpoints, object.Tree{"addresses": []any{ip.String()}, "conditions": object.Tree{"ready": true}})
		}
	}
	d := c.objects.Lookup("discovery.k8s.io", "endpointslices")
	// The address type is immutable.
	found, err := c.objects.Read(ctx, c.slice)
	if err != nil {
		return err
	}
	if found != nil {
		var slice discoveryv1.EndpointSlice
		if json.Unmarshal(found.JSON, &slice) == nil && slice.AddressType != addressType {
			if err := c.objects.Delete(ctx, d, c.slice, &metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return c.write(ctx, c.slice, d, func(t object.Tree) bool {
		labels := kind.Child(object.Metadata(t), "labels")
		same := labels[discoveryv1.LabelServiceName] == Default && object.Equal(t["endpoints"], any(endpoints)) && object.Equal(t["ports"], any(ports))
		labels[discoveryv1.LabelServiceName] = Default
		t["addressType"], t["endpoints"], t["ports"] = string(addressType), endpoints, ports
		return !same
	})
}

// write creates or updates an object.
func (c *Controller) write(ctx context.Context, key string, d *resource.Definition, edit func(object.Tree) bool) error {
	found, err := c.objects.Read(ctx, key)
	if err != nil {
		return err
	}
	if found != nil {
		return c.objects.Change(ctx, d, key, found.UID, "", edit)
	}
	t := object.Tree{"metadata": object.Tree{"name": Default, "namespace": namespace}}
	edit(t)
	return c.objects.Create(ctx, d, namespace, t)
}
