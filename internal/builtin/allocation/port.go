package allocation

import (
	"context"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// A PortRange is the range of node ports.
type PortRange = utilnet.PortRange

// The lower part of the ports is reserved for static assignment: a 32nd, within bounds.
const (
	leastReservedPorts = 16
	mostReservedPorts  = 128
	reservedPortsShare = 32
)

// A portSet is the set of allocated ports.
type portSet struct {
	of       PortRange
	bits     big.Int
	revision int64 // of the record; kv.Absent without one
	other    bool  // the record has another range
}

func (s *portSet) in(port int32) bool  { return s.of.Contains(int(port)) }
func (s *portSet) has(port int32) bool { return s.in(port) && s.bits.Bit(int(port)-s.of.Base) == 1 }

func (s *portSet) set(port int32, taken uint) {
	if s.in(port) {
		s.bits.SetBit(&s.bits, int(port)-s.of.Base, taken)
	}
}

// next returns a free port, preferably not a reserved one.
func (s *portSet) next(free func(int32) bool) (int32, bool) {
	size, reserved := s.of.Size, 0
	if size > leastReservedPorts {
		reserved = min(max(size/reservedPortsShare, leastReservedPorts), mostReservedPorts)
	}
	for _, part := range [][2]int{{reserved, size}, {0, reserved}} {
		from, n := part[0], part[1]-part[0]
		if n == 0 {
			continue
		}
		begin := rand.IntN(n)
		for i := range n {
			if port := int32(s.of.Base + from + (begin+i)%n); free(port) {
				return port, true
			}
		}
	}
	return 0, false
}

// value encodes the set as a kube-apiserver does.
func (s *portSet) value() ([]byte, error) {
	return json.Marshal(&corev1.RangeAllocation{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "RangeAllocation"},
		Range:    s.of.String(), Data: s.bits.Bytes(),
	})
}

// recorded returns the ports in the record. Without a record, or if it has another range, it
// returns the ports of all Services.
func (a *Allocator) recorded(ctx context.Context) (*portSet, error) {
	snapshot, err := a.o.Cache.Resource(resource.RangesPrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	s := &portSet{of: a.o.Ports}
	if o := snapshot.Get(resource.NodePortsKey); o != nil {
		s.revision = o.Revision
		var record corev1.RangeAllocation
		data, err := o.Raw() // it may have no metadata
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(data, &record) == nil && record.Range == s.of.String() {
			s.bits.SetBytes(record.Data)
			return s, nil
		}
		s.other = true
	}
	return s, a.EachService(ctx, func(service *corev1.Service) error {
		for _, port := range PortsOf(service) {
			s.set(port, 1)
		}
		return nil
	})
}

// EachService calls do for every stored Service, until an error.
func (a *Allocator) EachService(ctx context.Context, do func(*corev1.Service) error) error {
	snapshot, err := a.o.Cache.Resource(a.o.Services.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return err
	}
	for o := range snapshot.Scan(a.o.Services.StoragePrefix, "") {
		service := &corev1.Service{}
		if o.Err() != nil {
			continue
		}
		data, err := o.JSON()
		if err != nil {
			return err
		}
		if json.Unmarshal(data, service) != nil {
			continue
		}
		if err := do(service); err != nil {
			return err
		}
	}
	return nil
}

// PortsOf returns the node ports of a Service, without duplicates.
func PortsOf(s *corev1.Service) (ports []int32) {
	if t := s.Spec.Type; t != corev1.ServiceTypeNodePort && t != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	for _, p := range s.Spec.Ports {
		ports = append(ports, p.NodePort)
	}
	if ChecksHealth(&s.Spec) {
		ports = append(ports, s.Spec.HealthCheckNodePort)
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	if len(ports) > 0 && ports[0] == 0 {
		ports = ports[1:]
	}
	return ports
}

// ChecksHealth reports whether a Service has a health check node port, where a load balancer asks
// nodes whether they have endpoints.
func ChecksHealth(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// withPorts calls try with the set of allocated ports.
func (o *operation) withPorts(ctx context.Context, try func() error) error {
	if o.ports != nil {
		if err := try(); err == nil {
			return nil
		}
	}
	return o.a.fresh(ctx, func() (err error) {
		if o.ports, err = o.a.recorded(ctx); err != nil {
			return err
		}
		return try()
	})
}

func (o *operation) free(port int32) bool { return !o.ports.has(port) && !o.chosen[port] }

func (o *operation) NextPort(ctx context.Context) (port int32, err error) {
	err = o.withPorts(ctx, func() (err error) {
		var ok bool
		if port, ok = o.ports.next(o.free); !ok {
			return ErrFull
		}
		return nil
	})
	o.chosen[port] = true
	o.a.metrics.port(dynamic, err)
	return port, err
}

func (o *operation) TakePort(ctx context.Context, port int32) error {
	if !o.a.o.Ports.Contains(int(port)) {
		return errPortNotInRange(o.a.o.Ports)
	}
	err := o.withPorts(ctx, func() error {
		if !o.free(port) {
			return errPortTaken
		}
		return nil
	})
	if err == nil {
		o.chosen[port] = true
	}
	o.a.metrics.port(static, err)
	return err
}
