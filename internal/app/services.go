package app

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/controller/kubernetesservice"
	"github.com/anykind/anykind/internal/controller/servicecidr"
	"github.com/anykind/anykind/internal/object/resource"
)

// Default ranges of Services, as in Kubernetes.
const (
	DefaultServiceCIDR      = "10.0.0.0/24"
	DefaultServiceNodePorts = "30000-32767"
)

// Limits of the number of host bits in a range of cluster IPs.
const (
	fewestHostBits = 3
	mostHostBits   = 64
)

// Reconcilers of the endpoints of the Service kubernetes, as in --endpoint-reconciler-type.
const (
	ReconcileByLease = "lease"
	ReconcileNothing = "none"
	// ReconcileByCount is deprecated in Kubernetes. Here it is ReconcileByLease: addresses of
	// stopped servers are removed.
	ReconcileByCount = "master-count"
)

// Services configures the addresses and ports of Services, and the address of the server.
type Services struct {
	// CIDRs are the ranges of cluster IPs, one or one per IP family; empty is DefaultServiceCIDR.
	CIDRs []string
	// NodePorts is the range of node ports; empty is DefaultServiceNodePorts.
	NodePorts string
	// Advertise is the advertised address of the server. Empty is the address of its listener or, if
	// that listens on all addresses, the address of the first interface with a default route.
	Advertise string
	// Reconciler is ReconcileByLease (the default), ReconcileByCount or ReconcileNothing.
	Reconciler string
	// ClusterIPs makes the server connect to a Service by its cluster IP, which needs a service
	// proxy. Otherwise it connects to the endpoints.
	ClusterIPs bool
}

// given are parsed and validated Services.
type given struct {
	cidrs     []netip.Prefix
	ports     utilnet.PortRange
	advertise netip.Addr // the zero Addr if not configured
	reconcile bool
}

func (s Services) read() (g given, err error) {
	if len(s.CIDRs) == 0 {
		s.CIDRs = []string{DefaultServiceCIDR}
	}
	for _, text := range s.CIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Masked() != p {
			return g, fmt.Errorf("--service-cluster-ip-range %q: want a CIDR such as %s", text, DefaultServiceCIDR)
		}
		if host := p.Addr().BitLen() - p.Bits(); host < fewestHostBits || host > mostHostBits {
			return g, fmt.Errorf("--service-cluster-ip-range %s: want at least %d addresses, and for IPv6 a prefix of at least 64 bits", p, 1<<fewestHostBits)
		}
		g.cidrs = append(g.cidrs, p)
	}
	if n := len(g.cidrs); n > 2 || n == 2 && g.cidrs[0].Addr().Is4() == g.cidrs[1].Addr().Is4() {
		return g, fmt.Errorf("--service-cluster-ip-range %v: want one CIDR, or one of IPv4 and one of IPv6", s.CIDRs)
	}
	if s.NodePorts == "" {
		s.NodePorts = DefaultServiceNodePorts
	}
	if err := g.ports.Set(s.NodePorts); err != nil || g.ports.Size == 0 {
		return g, fmt.Errorf("--service-node-port-range %q: want a range such as %s", s.NodePorts, DefaultServiceNodePorts)
	}
	if s.Advertise != "" {
		if g.advertise, err = netip.ParseAddr(s.Advertise); err != nil || g.advertise.IsUnspecified() {
			return g, fmt.Errorf("--advertise-address %q: want an IP address", s.Advertise)
		}
	}
	if !slices.Contains([]string{"", ReconcileByLease, ReconcileNothing, ReconcileByCount}, s.Reconciler) {
		return g, fmt.Errorf("--endpoint-reconciler-type %q: want %s or %s", s.Reconciler, ReconcileByLease, ReconcileNothing)
	}
	g.reconcile = s.Reconciler != ReconcileNothing
	return g, nil
}

// server returns the addresses of a server with a listener at an address.
func (g given) server(at net.Addr) (s kubernetesservice.Server, err error) {
	listening, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return s, err
	}
	ip := listening.Addr().Unmap().WithZone("")
	switch {
	case g.advertise.IsValid():
		ip = g.advertise
	case ip.IsUnspecified():
		ip = outside()
	}
	return kubernetesservice.Server{CIDRs: g.cidrs, Address: netip.AddrPortFrom(ip, listening.Port()), Reconcile: g.reconcile}, nil
}

// outside returns the address of the interface with a default route, or else a loopback address.
func outside() netip.Addr {
	if chosen, err := utilnet.ChooseHostInterface(); err == nil {
		if ip, ok := netip.AddrFromSlice(chosen); ok {
			return ip.Unmap()
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// ensureServices creates the ServiceCIDR and the Service kubernetes, before another Service can get
// its address.
func (w *wired) ensureServices(ctx context.Context, core *resource.Set) error {
	if err := w.unlessRejected(w.ensureRange(ctx, core)); err != nil {
		return err
	}
	return w.unlessRejected(w.ensure(ctx, core.Lookup("", "services"), w.server.Service()))
}

// ensureRange creates the ServiceCIDR. Before that, it allocates the addresses of stored Services of
// an earlier version.
func (w *wired) ensureRange(ctx context.Context, core *resource.Set) error {
	cidrs := w.server.CIDRs
	t := servicecidr.Object(cidrs)
	ranges, addresses := core.Lookup("networking.k8s.io", "servicecidrs"), core.Lookup("networking.k8s.io", "ipaddresses")
	if there, err := w.exists(ctx, ranges, t); there || err != nil {
		return err
	}
	err := w.addresses.EachService(ctx, func(s *corev1.Service) error {
		for _, text := range allocation.Holds(s).Addresses {
			ip, err := netip.ParseAddr(text)
			if err != nil || !slices.ContainsFunc(cidrs, func(p netip.Prefix) bool { return allocation.Contains(p, ip) }) {
				continue
			}
			if err := w.ensure(ctx, addresses, w.addresses.NewAddress(text, s.Namespace, s.Name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.ensure(ctx, ranges, t)
}
