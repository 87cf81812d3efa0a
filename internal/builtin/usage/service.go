package usage

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/internal/object"
)

type serviceEvaluator struct{}

func (serviceEvaluator) Limits(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceServices, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return isCount(name, services)
}

// Updates is true for updates of a Service, whose type may change.
func (serviceEvaluator) Updates(subresource string, _, _ object.Tree) bool { return subresource == "" }

func (serviceEvaluator) Read(_ context.Context, decode func(any) error) (Object, error) {
	s := &service{}
	return s, decode(&s.Service)
}

// A service is a measured Service.
type service struct{ corev1.Service }

func (s *service) Usage() corev1.ResourceList {
	ports, balancers := 0, 0
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports = len(s.Spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		balancers, ports = 1, len(s.Spec.Ports)
		if given := s.Spec.AllocateLoadBalancerNodePorts; given != nil && !*given {
			ports = s.chosenPorts()
		}
	}
	return corev1.ResourceList{
		CountName(services):                  one,
		corev1.ResourceServices:              one,
		corev1.ResourceServicesNodePorts:     *resource.NewQuantity(int64(ports), resource.DecimalSI),
		corev1.ResourceServicesLoadBalancers: *resource.NewQuantity(int64(balancers), resource.DecimalSI),
	}
}

// chosenPorts returns the number of requested node ports.
func (s *service) chosenPorts() (n int) {
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			n++
		}
	}
	return n
}

func (*service) InScope(corev1.ScopedResourceSelectorRequirement) (bool, error) { return false, nil }
func (*service) Lacks([]corev1.ResourceName) error                              { return nil }
