package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/kind"
)

// defaultService sets defaults. The client owns these fields.
func defaultService(obj map[string]any) {
	spec := kind.Child(obj, "spec")
	kind.SetDefault(spec, "type", string(corev1.ServiceTypeClusterIP))
	kind.SetDefault(spec, "sessionAffinity", string(corev1.ServiceAffinityNone))
	switch corev1.ServiceAffinity(kind.Text(spec, "sessionAffinity")) {
	case corev1.ServiceAffinityNone:
		delete(spec, "sessionAffinityConfig")
	case corev1.ServiceAffinityClientIP:
		if kind.Value(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds") == nil {
			spec["sessionAffinityConfig"] = map[string]any{"clientIP": map[string]any{"timeoutSeconds": int64(corev1.DefaultClientIPServiceAffinitySeconds)}}
		}
	}
	for _, p := range kind.List(spec, "ports") {
		port, _ := p.(map[string]any)
		kind.SetDefault(port, "protocol", string(corev1.ProtocolTCP))
		if target := port["targetPort"]; target == nil || target == int64(0) || target == "" {
			port["targetPort"] = port["port"]
		}
	}
	typ := corev1.ServiceType(kind.Text(spec, "type"))
	if accessible(typ, kind.Texts(spec, "externalIPs")) {
		kind.SetDefault(spec, "externalTrafficPolicy", string(corev1.ServiceExternalTrafficPolicyCluster))
	}
	if hasClusterIP(typ) {
		kind.SetMissing(spec, "internalTrafficPolicy", string(corev1.ServiceInternalTrafficPolicyCluster))
	}
	if typ == corev1.ServiceTypeLoadBalancer {
		defaultLoadBalancer(obj, spec)
	}
}

func defaultLoadBalancer(obj, spec map[string]any) {
	kind.SetMissing(spec, "allocateLoadBalancerNodePorts", true)
	for _, i := range kind.List(obj, "status", "loadBalancer", "ingress") {
		if ingress, _ := i.(map[string]any); kind.Text(ingress, "ip") != "" {
			kind.SetMissing(ingress, "ipMode", string(corev1.LoadBalancerIPModeVIP))
		}
	}
}

// accessible reports whether a service is reachable from outside the cluster.
func accessible(typ corev1.ServiceType, externalIPs []string) bool {
	switch typ {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		return true
	}
	return typ == corev1.ServiceTypeClusterIP && len(externalIPs) > 0
}

// hasClusterIP reports whether a type of service has a cluster IP.
func hasClusterIP(typ corev1.ServiceType) bool {
	switch typ {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		return true
	}
	return false
}

func headless(spec *corev1.ServiceSpec) bool {
	return len(spec.ClusterIPs) == 1 && spec.ClusterIPs[0] == corev1.ClusterIPNone
}

// revertService reverts the status, and drops fields that belong to the old type.
func revertService(obj, old map[string]any) {
	kind.Put(obj, "status", old["status"])
	s, was := kind.ValueOf[corev1.Service](obj), kind.ValueOf[corev1.Service](old)
	if was != nil {
		dropOfOtherType(s, &was.Spec)
	}
	// a conversion back cannot fail
	if t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s); err == nil {
		obj["spec"], obj["status"] = t["spec"], t["status"]
	}
}

// dropOfOtherType drops fields of the old type that the client has left unchanged. Validation
// rejects changed ones.
func dropOfOtherType(s *corev1.Service, old *corev1.ServiceSpec) {
	spec := &s.Spec
	if spec.Type == corev1.ServiceTypeExternalName && old.Type != spec.Type {
		if spec.ClusterIP == old.ClusterIP && slices.Equal(spec.ClusterIPs, old.ClusterIPs) {
			spec.ClusterIP, spec.ClusterIPs = "", nil
		}
		if slices.Equal(spec.IPFamilies, old.IPFamilies) {
			spec.IPFamilies = nil
		}
		drop(&spec.IPFamilyPolicy, old.IPFamilyPolicy)
	}
	nodes := func(t corev1.ServiceType) bool {
		return t == corev1.ServiceTypeNodePort || t == corev1.ServiceTypeLoadBalancer
	}
	if nodes(old.Type) && !nodes(spec.Type) {
		dropNodePorts(spec.Ports, old.Ports)
	}
	if allocation.ChecksHealth(old) && !allocation.ChecksHealth(spec) && spec.HealthCheckNodePort == old.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	if old.Type == corev1.ServiceTypeLoadBalancer && spec.Type != old.Type {
		drop(&spec.AllocateLoadBalancerNodePorts, old.AllocateLoadBalancerNodePorts)
		drop(&spec.LoadBalancerClass, old.LoadBalancerClass)
	}
	if accessible(old.Type, old.ExternalIPs) && !accessible(spec.Type, spec.ExternalIPs) && spec.ExternalTrafficPolicy == old.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// drop clears a field that equals the old one.
func drop[T comparable](now **T, old *T) {
	if *now != nil && old != nil && **now == *old {
		*now = nil
	}
}

// dropNodePorts clears all node ports, unless one of them is new.
func dropNodePorts(ports, old []corev1.ServicePort) {
	for _, p := range ports {
		known := func(o corev1.ServicePort) bool { return o.NodePort == p.NodePort }
		if p.NodePort != 0 && !slices.ContainsFunc(old, known) {
			return
		}
	}
	for i := range ports {
		ports[i].NodePort = 0
	}
}

// canonicalizeService drops validated fields that have no meaning for ExternalName.
func canonicalizeService(obj map[string]any) {
	spec := kind.Tree(obj, "spec")
	if kind.Text(spec, "type") != string(corev1.ServiceTypeExternalName) {
		return
	}
	delete(spec, "internalTrafficPolicy")
	if ip := kind.Text(spec, "clusterIP"); ip != "" && len(kind.List(spec, "clusterIPs")) == 0 {
		spec["clusterIPs"] = []any{ip}
	}
}
