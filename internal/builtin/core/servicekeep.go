package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/allocation"
)

// keepAllocated keeps addresses and ports of the old service if the update omits them, so that a
// manifest without them can be applied again.
func keepAllocated(spec, old *corev1.ServiceSpec) {
	if spec.Type != corev1.ServiceTypeExternalName && old.Type != corev1.ServiceTypeExternalName {
		if spec.ClusterIP == "" {
			spec.ClusterIP = old.ClusterIP
		}
		if len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = slices.Clone(old.ClusterIPs)
		}
	}
	if allocatesNodePorts(spec) && allocatesNodePorts(old) {
		keepNodePorts(spec.Ports, old.Ports)
	}
	if allocation.ChecksHealth(spec) && allocation.ChecksHealth(old) && spec.HealthCheckNodePort == 0 {
		spec.HealthCheckNodePort = old.HealthCheckNodePort
	}
}

func allocatesNodePorts(spec *corev1.ServiceSpec) bool {
	switch spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		return spec.AllocateLoadBalancerNodePorts == nil || *spec.AllocateLoadBalancerNodePorts
	}
	return false
}

// keepNodePorts keeps the node port of a port with the same name, unless another port has it now.
func keepNodePorts(ports, old []corev1.ServicePort) {
	had := map[string]int32{}
	for _, p := range old {
		had[p.Name] = p.NodePort
	}
	taken := map[int32]bool{}
	for _, p := range ports {
		taken[p.NodePort] = true
	}
	for i := range ports {
		if p := &ports[i]; p.NodePort == 0 && !taken[had[p.Name]] {
			p.NodePort = had[p.Name]
		}
	}
}

// keepClusterIPs synchronizes clusterIP and clusterIPs for clients that only know the first.
func keepClusterIPs(spec *corev1.ServiceSpec, old *corev1.Service) {
	if old == nil {
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		return
	}
	was := &old.Spec
	switch same := slices.Equal(spec.ClusterIPs, was.ClusterIPs); {
	case spec.ClusterIP == was.ClusterIP:
		if len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = slices.Clone(was.ClusterIPs)
		}
	case spec.ClusterIP != "" && same:
		spec.ClusterIPs = []string{spec.ClusterIP}
	case same:
		spec.ClusterIPs = nil
	}
}
