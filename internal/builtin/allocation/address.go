package allocation

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/store/kv"
)

// The lower part of a range is reserved for static assignment as long as other addresses are free:
// a sixteenth of the range, within bounds.
const (
	leastReserved = 16
	mostReserved  = 256
	reservedShare = 16
)

// A uint64 can count the addresses of the largest IPv6 range.
const shortestIPv6Prefix = 64

// A block is the allocatable addresses of a range.
type block struct {
	first    netip.Addr
	size     uint64
	reserved uint64 // number of addresses from the first on that are allocated last
}

// blockOf returns the block of a range, without the network address and, in IPv4, the broadcast
// address.
func blockOf(p netip.Prefix) (b block, ok bool) {
	host := p.Addr().BitLen() - p.Bits()
	if p.Addr().Is6() && p.Bits() < shortestIPv6Prefix {
		return block{}, false
	}
	all := uint64(math.MaxUint64)
	if host < 64 {
		all = 1 << host
	}
	b.first, b.size = p.Masked().Addr().Next(), all
	if host < 64 {
		b.size--
	}
	if p.Addr().Is4() {
		b.size -= min(b.size, 1)
	}
	if all > leastReserved {
		b.reserved = min(max(all/reservedShare, leastReserved), mostReserved)
	}
	return b, b.size > 0
}

// choose returns a free address of the block, preferably not a reserved one. It starts at a random
// address, so that concurrent servers rarely choose the same.
func (b block) choose(taken func(netip.Addr) bool) (netip.Addr, bool) {
	reserved := min(b.reserved, b.size)
	for _, part := range []block{{first: plus(b.first, reserved), size: b.size - reserved}, {first: b.first, size: reserved}} {
		if part.size == 0 {
			continue
		}
		begin := rand.Uint64N(part.size)
		for i := range part.size {
			at := begin + i
			if at >= part.size || at < begin {
				at -= part.size
			}
			if ip := plus(part.first, at); !taken(ip) {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}

// plus returns the address n after ip.
func plus(ip netip.Addr, n uint64) netip.Addr {
	wide := ip.As16()
	low, carry := bits.Add64(binary.BigEndian.Uint64(wide[8:]), n, 0)
	high, _ := bits.Add64(binary.BigEndian.Uint64(wide[:8]), 0, carry)
	binary.BigEndian.PutUint64(wide[8:], low)
	binary.BigEndian.PutUint64(wide[:8], high)
	sum := netip.AddrFrom16(wide)
	if ip.Is4() {
		return sum.Unmap()
	}
	return sum
}

// Contains reports whether an address can be allocated from a range.
func Contains(p netip.Prefix, ip netip.Addr) bool {
	if !p.Contains(ip) || ip == p.Masked().Addr() {
		return false
	}
	return ip.Is6() || p.Contains(ip.Next())
}

// Ranges returns the ranges of all ServiceCIDRs. With ready it returns only those for allocation:
// not in deletion, and with the condition Ready true or missing.
func (a *Allocator) Ranges(ctx context.Context, ready bool) (all []netip.Prefix, err error) {
	snapshot, err := a.o.Cache.Resource(a.o.Ranges.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	for o := range snapshot.Scan(a.o.Ranges.StoragePrefix, "") {
		var c networkingv1.ServiceCIDR
		if o.Err() != nil {
			continue
		}
		data, err := o.JSON()
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(data, &c) != nil || ready && !isReady(&c) {
			continue
		}
		for _, text := range c.Spec.CIDRs {
			if p, err := netip.ParsePrefix(text); err == nil {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

func isReady(c *networkingv1.ServiceCIDR) bool {
	if c.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range c.Status.Conditions {
		if condition.Type == networkingv1.ServiceCIDRConditionReady {
			return condition.Status == metav1.ConditionTrue
		}
	}
	return true // without a controller there is no condition
}

// taken returns a function that reports whether an IPAddress exists.
func (a *Allocator) taken(ctx context.Context) (func(netip.Addr) bool, error) {
	snapshot, err := a.o.Cache.Resource(a.o.Addresses.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	return func(ip netip.Addr) bool { return snapshot.Get(a.o.Addresses.Key("", ip.String())) != nil }, nil
}

func (o *operation) NextAddress(ctx context.Context, family corev1.IPFamily) (string, error) {
	var chosen netip.Addr
	var of netip.Prefix // the range of the address
	begun := time.Now()
	err := o.a.fresh(ctx, func() error {
		ranges, err := o.a.Ranges(ctx, true)
		if err != nil {
			return err
		}
		taken, err := o.a.taken(ctx)
		if err != nil {
			return err
		}
		for _, p := range ranges {
			b, ok := blockOf(p)
			if !ok || FamilyOf(p.Addr()) != family {
				continue
			}
			of = p
			if chosen, ok = b.choose(taken); ok {
				return nil
			}
		}
		return ErrFull
	})
	o.a.metrics.address(of, dynamic, begun, err)
	return chosen.String(), err
}

func (o *operation) TakeAddress(ctx context.Context, text string) error {
	ip, err := ParseAddress(text)
	if err != nil {
		return err
	}
	var of netip.Prefix
	begun := time.Now()
	err = o.a.fresh(ctx, func() error {
		ranges, err := o.a.Ranges(ctx, true)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(ranges, func(p netip.Prefix) bool { return Contains(p, ip) })
		if i < 0 {
			return errNoRange
		}
		of = ranges[i]
		taken, err := o.a.taken(ctx)
		if err == nil && taken(ip) {
			return errIPTaken
		}
		return err
	})
	o.a.metrics.address(of, static, begun, err)
	return err
}

// ParseAddress parses the address of a Service. Addresses stored by old versions may have leading
// zeros.
func ParseAddress(text string) (netip.Addr, error) {
	ip, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	if !ok {
		return netip.Addr{}, fmt.Errorf("failed to parse service IP %q", text)
	}
	return ip.Unmap(), nil
}

// isOf reports whether a stored IPAddress belongs to a Service.
func isOf(value []byte, namespace, name string) bool {
	var address networkingv1.IPAddress
	if json.Unmarshal(value, &address) != nil || address.Spec.ParentRef == nil {
		return false
	}
	return *address.Spec.ParentRef == networkingv1.ParentReference{Resource: "services", Namespace: namespace, Name: name}
}
