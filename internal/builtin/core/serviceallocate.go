package core

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// GiveAddresses makes the kind Service allocate from a.
func GiveAddresses(services *resource.Definition, a *allocation.Allocator) {
	services.Allocate = func(ctx context.Context, c *resource.Change) error {
		w := serviceAllocation{
			Chooser: a.Choose(), service: kind.ValueOf[corev1.Service](c.Object), old: kind.ValueOf[corev1.Service](c.Old), gates: c.Gates,
		}
		if c.DryRun {
			w.Chooser = a.Pretend()
		}
		if err := w.allocate(ctx, a.Families()); err != nil {
			return err
		}
		w.store(kind.Child(c.Object, "spec"))
		return nil
	}
	services.Resolve = func(ctx context.Context, c *resource.Change) ([]resource.Mark, error) {
		if c.DryRun {
			return nil, nil
		}
		had, has := allocation.Holds(kind.ValueOf[corev1.Service](c.Old)), allocation.Held{}
		if goes := object.Deleting(c.Object) && len(object.Finalizers(c.Object)) == 0; !goes {
			has = allocation.Holds(kind.ValueOf[corev1.Service](c.Object))
		}
		return a.Marks(ctx, c.Namespace, object.Name(c.Object), had, has)
	}
}

// A serviceAllocation sets the allocated fields of a service.
type serviceAllocation struct {
	allocation.Chooser
	service, old *corev1.Service // old is nil on create
	gates        *gate.Set
}

func (w *serviceAllocation) allocate(ctx context.Context, families []corev1.IPFamily) error {
	spec := &w.service.Spec
	if w.old != nil {
		completeStored(&w.old.Spec, families)
		keepAllocated(spec, &w.old.Spec)
	}
	keepClusterIPs(spec, w.old)
	if errs := fillFamilies(w.gates, spec, w.old, families); len(errs) > 0 {
		return w.invalid(errs...)
	}
	if err := w.addresses(ctx); err != nil {
		return err
	}
	if w.old == nil {
		return w.newPorts(ctx)
	}
	return w.changedPorts(ctx)
}

// completeStored sets fields that old versions of Kubernetes did not store.
func completeStored(spec *corev1.ServiceSpec, families []corev1.IPFamily) {
	keepClusterIPs(spec, nil)
	if spec.Type == corev1.ServiceTypeExternalName || len(spec.IPFamilies) > 0 {
		return
	}
	policy := corev1.IPFamilyPolicySingleStack
	switch {
	case spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0:
		policy = corev1.IPFamilyPolicyRequireDualStack
		spec.IPFamilies = []corev1.IPFamily{families[0], otherFamily(families[0])}
	case spec.ClusterIP == corev1.ClusterIPNone:
		spec.IPFamilies = families[:1:1]
	case len(spec.ClusterIPs) == 0:
		return // an own service without an address yet
	default:
		for _, ip := range spec.ClusterIPs {
			spec.IPFamilies = append(spec.IPFamilies, familyOf(ip))
		}
		if len(spec.IPFamilies) > 1 {
			policy = corev1.IPFamilyPolicyRequireDualStack
		}
	}
	spec.IPFamilyPolicy = &policy
}

func (w *serviceAllocation) invalid(errs ...*field.Error) error {
	return status.Invalid(schema.GroupKind{Kind: "Service"}, w.service.Name, errs)
}

// addresses allocates an address of each family, if the service has cluster IPs. Existing ones
// stay.
func (w *serviceAllocation) addresses(ctx context.Context) error {
	spec := &w.service.Spec
	if spec.Type == corev1.ServiceTypeExternalName || headless(spec) {
		return nil
	}
	first := 0
	if w.old != nil && w.old.Spec.Type != corev1.ServiceTypeExternalName && len(w.old.Spec.ClusterIPs) > 0 {
		if keepsPreferDual(spec, w.old) || headless(&w.old.Spec) || len(w.old.Spec.IPFamilies) != 1 {
			return nil
		}
		first = 1 // a second one may be added
	}
	for i := first; i < len(spec.IPFamilies); i++ {
		if i >= len(spec.ClusterIPs) {
			spec.ClusterIPs = append(spec.ClusterIPs, "")
		}
	}
	for i := first; i < len(spec.IPFamilies); i++ {
		if err := w.address(ctx, i); err != nil {
			return err
		}
	}
	if first == 0 && len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	return nil
}

// address allocates the address i.
func (w *serviceAllocation) address(ctx context.Context, i int) (err error) {
	ips := w.service.Spec.ClusterIPs
	at := field.NewPath("spec", "clusterIPs")
	if ip := ips[i]; ip != "" {
		if err := w.TakeAddress(ctx, ip); err != nil {
			return w.invalid(field.Invalid(at, ips, fmt.Sprintf("failed to allocate IP %v: %v", ip, err)))
		}
		return nil
	}
	ip, err := w.NextAddress(ctx, w.service.Spec.IPFamilies[i])
	switch {
	case errors.Is(err, allocation.ErrFull):
		return status.Internal(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", w.service.Name, err))
	case err != nil:
		return w.invalid(field.Invalid(at, ips, fmt.Sprintf("failed to allocate IP: %v", err)))
	}
	ips[i] = ip
	return nil
}

// Lacks reports whether a write would allocate something for a stored service. Earlier versions did
// not allocate.
func Lacks(s *corev1.Service) bool {
	spec := &s.Spec
	if spec.Type == corev1.ServiceTypeExternalName {
		return false
	}
	portless := func(p corev1.ServicePort) bool { return p.NodePort == 0 }
	return spec.ClusterIP == "" && len(spec.ClusterIPs) == 0 ||
		allocatesNodePorts(spec) && slices.ContainsFunc(spec.Ports, portless) ||
		allocation.ChecksHealth(spec) && spec.HealthCheckNodePort == 0
}

// onNodes reports whether a type of service has node ports.
func onNodes(t corev1.ServiceType) bool {
	return t == corev1.ServiceTypeNodePort || t == corev1.ServiceTypeLoadBalancer
}

// newPorts allocates the node ports of a new service: one for all ports of the same number,
// whatever their protocols.
func (w *serviceAllocation) newPorts(ctx context.Context) error {
	spec := &w.service.Spec
	if !onNodes(spec.Type) {
		return nil
	}
	given := map[int32]int32{}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if p.NodePort == 0 && !allocatesNodePorts(spec) {
			continue
		}
		switch had := given[p.Port]; {
		case had == 0:
			if asked := askedPort(spec.Ports, p.Port); asked != 0 {
				p.NodePort = asked
				if err := w.takePort(ctx, i); err != nil {
					return err
				}
			} else if err := w.nextPort(ctx, p); err != nil {
				return err
			}
			given[p.Port] = p.NodePort
		case p.NodePort == 0:
			p.NodePort = had
		case p.NodePort != had:
			if err := w.takePort(ctx, i); err != nil {
				return err
			}
		}
	}
	if allocation.ChecksHealth(spec) {
		return w.healthPort(ctx)
	}
	return nil
}

// askedPort returns the requested node port of the first port with that number.
func askedPort(ports []corev1.ServicePort, number int32) int32 {
	i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool { return p.Port == number && p.NodePort != 0 })
	if i < 0 {
		return 0
	}
	return ports[i].NodePort
}

// changedPorts allocates missing node ports of an updated service.
func (w *serviceAllocation) changedPorts(ctx context.Context) error {
	spec := &w.service.Spec
	if !onNodes(spec.Type) {
		return nil
	}
	known := map[int32]bool{} // existing ports of the service
	for _, port := range allocation.PortsOf(w.old) {
		known[port] = true
	}
	type nodePort struct {
		protocol corev1.Protocol
		port     int32
	}
	seen := map[nodePort]bool{}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		var err error
		switch {
		case p.NodePort != 0 && !known[p.NodePort]:
			err = w.takePort(ctx, i)
			known[p.NodePort] = true
		case p.NodePort == 0 && allocatesNodePorts(spec):
			err = w.nextPort(ctx, p)
		case p.NodePort == 0:
			continue
		}
		if err != nil {
			return err
		}
		one := nodePort{p.Protocol, p.NodePort}
		if seen[one] {
			return fmt.Errorf("duplicate nodePort: {%v %v}", one.protocol, one.port)
		}
		seen[one] = true
	}
	old := &w.old.Spec
	given := old.ClusterIP != "" // otherwise it was stored without allocation
	if had := allocation.ChecksHealth(old) && (given || old.HealthCheckNodePort != 0); had || !allocation.ChecksHealth(spec) {
		return nil // it is immutable
	}
	return w.healthPort(ctx)
}

// takePort allocates the requested node port of port i.
func (w *serviceAllocation) takePort(ctx context.Context, i int) error {
	port := w.service.Spec.Ports[i].NodePort
	if err := w.TakePort(ctx, port); err != nil {
		return w.invalid(field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), port, err.Error()))
	}
	return nil
}

func (w *serviceAllocation) nextPort(ctx context.Context, p *corev1.ServicePort) (err error) {
	if p.NodePort, err = w.NextPort(ctx); err != nil {
		return status.Internal(fmt.Errorf("failed to allocate a nodePort: %w", err))
	}
	return nil
}

// healthPort allocates the health check node port.
func (w *serviceAllocation) healthPort(ctx context.Context) (err error) {
	port := &w.service.Spec.HealthCheckNodePort
	if *port != 0 {
		if err := w.TakePort(ctx, *port); err != nil {
			return status.Internal(fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", *port, err))
		}
		return nil
	}
	if *port, err = w.NextPort(ctx); err != nil {
		return status.Internal(fmt.Errorf("failed to allocate a HealthCheck NodePort %v: %w", *port, err))
	}
	return nil
}

// store writes the allocated fields to the spec of the object.
func (w *serviceAllocation) store(spec map[string]any) {
	put := func(name string, value any, there bool) {
		if delete(spec, name); there {
			spec[name] = value
		}
	}
	s := &w.service.Spec
	put("clusterIP", s.ClusterIP, s.ClusterIP != "")
	put("clusterIPs", list(s.ClusterIPs), len(s.ClusterIPs) > 0)
	put("ipFamilies", list(s.IPFamilies), len(s.IPFamilies) > 0)
	if s.IPFamilyPolicy != nil {
		spec["ipFamilyPolicy"] = string(*s.IPFamilyPolicy)
	}
	put("healthCheckNodePort", int64(s.HealthCheckNodePort), s.HealthCheckNodePort != 0)
	for i, p := range kind.List(spec, "ports") {
		if port, ok := p.(map[string]any); ok && i < len(s.Ports) && s.Ports[i].NodePort != 0 {
			port["nodePort"] = int64(s.Ports[i].NodePort)
		}
	}
}

func list[T ~string](texts []T) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = string(t)
	}
	return out
}
