// Package allocation gives cluster IPs and node ports to Services, each to one only.
//
// A cluster IP is given by an IPAddress, which has the address as its name. All node ports
// are bits of one record. Both are where a kube-apiserver over the same store has them. A
// Chooser chooses for one write; Marks keeps what was chosen, in the write of the Service
// itself. So what a Service has is taken as long as the Service is stored, and no longer,
// and there is nothing to undo.
//
// The package does not know what a Service needs; internal/builtin/core does. What others
// have made of the records is repaired by internal/controller/servicerepair.
package allocation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// What keeps a Service from being given something, in the words of Kubernetes.
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

// Options of an Allocator. All are needed.
type Options struct {
	Cache *watchcache.Cache
	// CIDRs are one range, or one of each family. The first one is of the family that
	// a Service has if it does not say.
	CIDRs []netip.Prefix
	Ports PortRange
	// Services, Addresses and Ranges are the kinds Service, IPAddress and ServiceCIDR.
	Services, Addresses, Ranges *resource.Definition
}

// An Allocator knows what is given to whom.
type Allocator struct {
	o       Options
	metrics metrics
}

// New returns an Allocator.
func New(o Options) *Allocator { return &Allocator{o: o, metrics: newMetrics()} }

// Families returns the families of addresses there are, first the default one.
func (a *Allocator) Families() (all []corev1.IPFamily) {
	for _, p := range a.o.CIDRs {
		all = append(all, FamilyOf(p.Addr()))
	}
	return all
}

// FamilyOf is the family of an address.
func FamilyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// A Chooser chooses for one write of a Service. It is used once, by one goroutine.
type Chooser interface {
	// NextAddress chooses an address of a family.
	NextAddress(ctx context.Context, family corev1.IPFamily) (string, error)
	// TakeAddress checks that a Service may have the address that it asks for.
	TakeAddress(ctx context.Context, ip string) error
	// NextPort chooses a port.
	NextPort(ctx context.Context) (int32, error)
	// TakePort checks that a Service may have the port that it asks for.
	TakePort(ctx context.Context, port int32) error
}

// Choose returns what chooses for a write that is stored.
func (a *Allocator) Choose() Chooser { return &operation{a: a, chosen: map[int32]bool{}} }

// Pretend returns what chooses for a write that is not stored: something that looks like
// an address or a port, as in Kubernetes.
func (a *Allocator) Pretend() Chooser { return &pretence{operation{a: a, chosen: map[int32]bool{}}} }

// An operation is a Chooser.
type operation struct {
	a      *Allocator
	ports  *portSet       // once it was needed
	chosen map[int32]bool // ports, by this operation
}

// fresh tries what depends on what is stored. If it does not succeed, that may be because
// the cache has not seen yet what was released, so it is tried once more.
func (a *Allocator) fresh(ctx context.Context, try func() error) error {
	if try() == nil {
		return nil
	}
	if _, err := a.o.Cache.Fresh(ctx); err != nil {
		return err
	}
	return try()
}
