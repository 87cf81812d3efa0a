// Package allocation allocates cluster IPs and node ports to Services, each to one Service.
//
// An IPAddress with the address as its name allocates a cluster IP. All node ports are bits of one
// record. Both have the same keys as in a kube-apiserver over the same store. A Chooser allocates
// for one write. Marks stores the allocations in the write of the Service itself. So an allocation
// lives exactly as long as the Service, and a failed write needs no rollback.
//
// The package does not know which allocations a Service needs; internal/builtin/core does.
// internal/controller/servicerepair repairs records that other programs have changed.
package allocation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Errors of allocations, in the words of Kubernetes.
var (
	ErrFull       = errors.New("range is full")
	errIPTaken    = errors.New("provided IP is already allocated")
	errNoRange    = errors.New("the provided network does not match the current range")
	errPortTaken  = errors.New("provided port is already allocated")
	errNotInRange = func(ip netip.Addr, of netip.Prefix) error {
		return fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", ip, of)
	}
	errPortNotInRange = func(of PortRange) error {
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %s", of)
	}
)

// Options of an Allocator. All are required.
type Options struct {
	Cache *watchcache.Cache
	// CIDRs are one range, or one of each family. The first one decides the default family of
	// Services.
	CIDRs []netip.Prefix
	Ports PortRange
	// Services, Addresses and Ranges are the kinds Service, IPAddress and ServiceCIDR.
	Services, Addresses, Ranges *resource.Definition
	// Gates are the feature gates.
	Gates *gate.Set
}

// An Allocator allocates cluster IPs and node ports.
type Allocator struct {
	o       Options
	metrics metrics
}

// New returns an Allocator.
func New(o Options) *Allocator { return &Allocator{o: o, metrics: newMetrics(o.Gates)} }

// Families returns the configured address families, the default one first.
func (a *Allocator) Families() (all []corev1.IPFamily) {
	for _, p := range a.o.CIDRs {
		all = append(all, FamilyOf(p.Addr()))
	}
	return all
}

// FamilyOf returns the family of an address.
func FamilyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// A Chooser allocates for one write of a Service. It is used once, by one goroutine.
type Chooser interface {
	// NextAddress allocates an address of a family.
	NextAddress(ctx context.Context, family corev1.IPFamily) (string, error)
	// TakeAddress allocates a requested address.
	TakeAddress(ctx context.Context, ip string) error
	// NextPort allocates a port.
	NextPort(ctx context.Context) (int32, error)
	// TakePort allocates a requested port.
	TakePort(ctx context.Context, port int32) error
}

// Choose returns a Chooser for a write that is stored.
func (a *Allocator) Choose() Chooser { return &operation{a: a, chosen: map[int32]bool{}} }

// Pretend returns a Chooser for a dry run. As in Kubernetes, it returns placeholders.
func (a *Allocator) Pretend() Chooser { return &pretence{operation{a: a, chosen: map[int32]bool{}}} }

// An operation is a Chooser.
type operation struct {
	a      *Allocator
	ports  *portSet       // set at the first use
	chosen map[int32]bool // ports allocated by this operation
}

// fresh calls try. If that fails, the cache may lack a recent release, so fresh refreshes it and
// tries once more.
func (a *Allocator) fresh(ctx context.Context, try func() error) error {
	if try() == nil {
		return nil
	}
	if _, err := a.o.Cache.Fresh(ctx); err != nil {
		return err
	}
	return try()
}
