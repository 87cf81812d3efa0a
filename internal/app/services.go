package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/controller/kubernetesservice"
	"github.com/anykind/anykind/internal/controller/servicecidr"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// What Services are given unless something else is said, as in Kubernetes.
const (
	DefaultServiceCIDR      = "10.0.0.0/24"
	DefaultServiceNodePorts = "30000-32767"
)

// Of an address in a range of Services, so many bits are not the range's.
const (
	fewestHostBits = 3
	mostHostBits   = 64
)

// How servers say at which addresses they are, in the words of --endpoint-reconciler-type.
const (
	ReconcileByLease = "lease"
	ReconcileNothing = "none"
	// ReconcileByCount is deprecated in Kubernetes, and is ReconcileByLease here: addresses of servers
	// that are gone do not stay.
	ReconcileByCount = "master-count"
)

// Services say what Services are given, and how the server is found by one.
type Services struct {
	// CIDRs are the ranges of cluster IPs, of one family or one of each; empty for
	// DefaultServiceCIDR.
	CIDRs []string
	// NodePorts are the ports of nodes; empty for DefaultServiceNodePorts.
	NodePorts string
	// Advertise is the address at which others find the server; empty for the one that
	// it listens on or, if it listens on all, that of the first interface that leads
	// outside.
	Advertise string
	// Reconciler is ReconcileNothing, ReconcileByCount or, which empty is as well, ReconcileByLease.
	Reconciler string
	// ClusterIPs says that what is behind a Service is called by its cluster IP, which takes
	// somebody who leads it on. Otherwise the endpoints are called.
	ClusterIPs bool
}

// given are Services that can be.
type given struct {
	cidrs     []netip.Prefix
	ports     utilnet.PortRange
	advertise netip.Addr // the zero Addr if nobody has said
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

// server is how a server is found that listens at an address.
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

// outside is the address of the interface that leads outside. A machine that is not
// connected is only found by itself.
func outside() netip.Addr {
	if chosen, err := utilnet.ChooseHostInterface(); err == nil {
		if ip, ok := netip.AddrFromSlice(chosen); ok {
			return ip.Unmap()
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// ensureServices makes what Services are given addresses of, and the one by which the
// server is found, so that no other gets its address.
func (w *wired) ensureServices(ctx context.Context, core *resource.Set) error {
	if err := w.ensureRange(ctx, core); err != nil {
		return err
	}
	err := w.ensure(ctx, core.Lookup("", "services"), w.server.Service())
	var refused *status.Error
	if errors.As(err, &refused) && refused.ErrStatus.Code < http.StatusInternalServerError {
		w.log.Warn("the Service kubernetes could not be created; check the ServiceCIDR kubernetes and --service-cluster-ip-range", "error", err)
		return nil
	}
	return err
}

// ensureRange makes the ServiceCIDR of the ranges. Before that, Services that an earlier
// version has stored are given the addresses that they have.
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
