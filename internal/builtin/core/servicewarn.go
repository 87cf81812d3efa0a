package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
)

// warnOfService warns about deprecated fields and fields without effect.
func warnOfService(obj, _ map[string]any) (warnings []string) {
	s, at := kind.ValueOf[corev1.Service](obj), field.NewPath("spec")
	spec := &s.Spec
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	addresses := func(field string, ips []string) {
		for i, ip := range ips {
			warnings = append(warnings, kind.WarnOfIP(at.Child(field).Index(i), ip)...)
		}
	}
	if _, ok := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		warn("annotation %s is deprecated, please use %s instead", corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode)
	}
	if spec.ClusterIP != "" && spec.ClusterIP != corev1.ClusterIPNone {
		addresses("clusterIPs", spec.ClusterIPs)
	}
	balancer := spec.LoadBalancerIP
	external := spec.ExternalIPs
	none := spec.Type == corev1.ServiceTypeClusterIP && spec.ClusterIP == corev1.ClusterIPNone
	if none && balancer != "" {
		warn("spec.loadBalancerIP is ignored for headless services")
	}
	if none && len(external) > 0 {
		warn("spec.externalIPs is ignored for headless services")
	}
	if none && spec.SessionAffinity != corev1.ServiceAffinityNone {
		warn("spec.SessionAffinity is ignored for headless services")
	}
	addresses("externalIPs", external)
	if len(external) > 0 && !none && spec.Type != corev1.ServiceTypeExternalName {
		warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if balancer != "" {
		warnings = append(warnings, kind.WarnOfIP(at.Child("loadBalancerIP"), balancer)...)
	}
	for i, r := range spec.LoadBalancerSourceRanges {
		if at := at.Child("loadBalancerSourceRanges").Index(i); len(validation.IsValidCIDRForLegacyField(at, r, false, nil)) == 0 {
			warnings = append(warnings, validation.GetWarningsForCIDR(at, r)...)
		}
	}
	if spec.Type == corev1.ServiceTypeExternalName && len(external) > 0 {
		warn("spec.externalIPs is ignored when spec.type is %q", spec.Type)
	}
	if spec.Type != corev1.ServiceTypeExternalName && spec.ExternalName != "" {
		warn("spec.externalName is ignored when spec.type is not %q", corev1.ServiceTypeExternalName)
	}
	if d := spec.TrafficDistribution; d != nil && *d == corev1.ServiceTrafficDistributionPreferClose {
		warn("spec.trafficDistribution: %q is deprecated; use %q", *d, corev1.ServiceTrafficDistributionPreferSameZone)
	}
	return warnings
}

func warnOfServiceStatus(obj, _ map[string]any) (warnings []string) {
	at := field.NewPath("status", "loadBalancer", "ingress")
	for i, ingress := range kind.ValueOf[corev1.Service](obj).Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			warnings = append(warnings, kind.WarnOfIP(at.Index(i), ingress.IP)...)
		}
	}
	return warnings
}
