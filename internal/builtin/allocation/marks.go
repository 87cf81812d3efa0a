package allocation

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/store/kv"
)

// ManagedBy is the manager in the label of IPAddresses.
const ManagedBy = "ipallocator.k8s.io"

// Held are the allocations of a Service.
type Held struct {
	Addresses []string
	Ports     []int32
}

// Holds returns the allocations of a Service, which may be nil.
func Holds(s *corev1.Service) (h Held) {
	if s == nil {
		return h
	}
	h.Ports = PortsOf(s)
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return h
	}
	for _, text := range s.Spec.ClusterIPs {
		if ip, err := ParseAddress(text); err == nil { // "None" is no address
			h.Addresses = append(h.Addresses, ip.String())
		}
	}
	return h
}

// without returns the elements of all that are not in other.
func without[T comparable](all, other []T) (out []T) {
	for _, one := range all {
		if !slices.Contains(other, one) {
			out = append(out, one)
		}
	}
	return out
}

// Marks returns the writes that allocate and release the difference between had and has, together
// with the Service. The error is resource.ErrTaken if another Service has an allocation by now.
func (a *Allocator) Marks(ctx context.Context, namespace, name string, had, has Held) ([]resource.Mark, error) {
	marks, err := a.addressMarks(ctx, namespace, name, without(had.Addresses, has.Addresses), without(has.Addresses, had.Addresses))
	if err != nil {
		return nil, err
	}
	mark, err := a.portsMark(ctx, without(had.Ports, has.Ports), without(has.Ports, had.Ports))
	if mark != nil {
		marks = append(marks, *mark)
	}
	return marks, err
}

func (a *Allocator) addressMarks(ctx context.Context, namespace, name string, released, taken []string) (marks []resource.Mark, err error) {
	if len(released)+len(taken) == 0 {
		return nil, nil
	}
	snapshot, err := a.o.Cache.Resource(a.o.Addresses.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	for _, ip := range released {
		o := snapshot.Get(a.o.Addresses.Key("", ip))
		// An IPAddress with finalizers is deleted by servicerepair, which waits for them.
		if o == nil || o.Err() != nil || o.Held() {
			continue
		}
		data, err := o.JSON()
		if err != nil {
			return nil, err
		}
		if isOf(data, namespace, name) {
			marks = append(marks, resource.Mark{Key: o.Key, Revision: o.Revision, Moves: true})
		}
	}
	for _, ip := range taken {
		key := a.o.Addresses.Key("", ip)
		if snapshot.Get(key) != nil {
			return nil, resource.ErrTaken
		}
		t := a.NewAddress(ip, namespace, name)
		metadata := object.Metadata(t)
		metadata["uid"], metadata["creationTimestamp"] = string(uuid.NewUUID()), object.Timestamp(time.Now())
		t = apply.FieldsOf(a.o.Addresses, a.o.Addresses.StorageVersion(), "").Update(ctx, nil, t, apply.Server)
		marks = append(marks, resource.Mark{Key: key, Moves: true, Value: object.AppendJSON(nil, t)})
	}
	return marks, nil
}

// NewAddress returns the IPAddress that allocates an address to a Service, as a client would create
// it.
func (a *Allocator) NewAddress(ip, namespace, name string) object.Tree {
	d := a.o.Addresses
	family := corev1.IPv4Protocol
	if strings.Contains(ip, ":") {
		family = corev1.IPv6Protocol
	}
	return object.Tree{
		"apiVersion": d.APIVersion(d.StorageVersion().Name), "kind": d.Kind,
		"metadata": object.Tree{
			"name": ip, "labels": object.Tree{networkingv1.LabelIPAddressFamily: string(family), networkingv1.LabelManagedBy: ManagedBy},
		},
		"spec": object.Tree{"parentRef": object.Tree{"resource": "services", "namespace": namespace, "name": name}},
	}
}

// portsMark returns the write of the port record after releases and allocations. All Services share
// the record, so these writes are serialized.
func (a *Allocator) portsMark(ctx context.Context, released, taken []int32) (*resource.Mark, error) {
	if len(released)+len(taken) == 0 {
		return nil, nil
	}
	s, err := a.recorded(ctx)
	if err != nil {
		return nil, err
	}
	for _, port := range taken {
		if s.has(port) {
			return nil, resource.ErrTaken
		}
		s.set(port, 1)
	}
	for _, port := range released {
		s.set(port, 0)
	}
	value, err := s.value()
	return &resource.Mark{Key: resource.NodePortsKey, Revision: s.revision, Moves: true, Value: value}, err
}
