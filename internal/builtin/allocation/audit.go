package allocation

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// A PortFault is an inconsistency of the node port of a Service.
type PortFault int

// The faults.
const (
	PortNotRecorded PortFault = iota // the record lacks the port
	PortShared                       // another Service has the port
	PortOutside                      // the port is outside of the range
)

// An Audit is the result of a comparison of the port record with the Services.
type Audit struct {
	stored, rebuilt *portSet
	// Leaked are recorded ports without a Service.
	Leaked []int32
}

// AuditPorts compares the port record with the node ports of all Services, and calls report for
// each fault.
func (a *Allocator) AuditPorts(ctx context.Context, report func(s *corev1.Service, port int32, fault PortFault)) (*Audit, error) {
	if _, err := a.o.Cache.Fresh(ctx); err != nil {
		return nil, err
	}
	stored, err := a.recorded(ctx)
	if err != nil {
		return nil, err
	}
	audit := &Audit{stored: stored, rebuilt: &portSet{of: a.o.Ports, revision: stored.revision}}
	err = a.EachService(ctx, func(s *corev1.Service) error {
		for _, port := range PortsOf(s) {
			switch {
			case !stored.in(port):
				report(s, port, PortOutside)
				continue
			case audit.rebuilt.has(port):
				report(s, port, PortShared)
			case !stored.has(port):
				report(s, port, PortNotRecorded)
			}
			audit.rebuilt.set(port, 1)
		}
		return nil
	})
	for i := range a.o.Ports.Size {
		port := int32(a.o.Ports.Base + i)
		if stored.has(port) && !audit.rebuilt.has(port) {
			audit.Leaked = append(audit.Leaked, port)
		}
	}
	return audit, err
}

// Repair returns the write of a record with the ports of all Services and those to keep. It returns
// false if the record has exactly these.
func (audit *Audit) Repair(keep []int32) (w kv.Write, ok bool, err error) {
	for _, port := range keep {
		audit.rebuilt.set(port, 1)
	}
	if audit.rebuilt.bits.Cmp(&audit.stored.bits) == 0 && !audit.stored.other {
		return kv.Write{}, false, nil
	}
	value, err := audit.rebuilt.value()
	return kv.Write{Key: resource.NodePortsKey, Value: value, Expect: audit.stored.revision}, true, err
}
