package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
)

// fillFamilies sets ipFamilies and ipFamilyPolicy, and returns errors.
func fillFamilies(gates *gate.Set, spec *corev1.ServiceSpec, old *corev1.Service, there []corev1.IPFamily) field.ErrorList {
	if spec.Type == corev1.ServiceTypeExternalName || keepsPreferDual(spec, old) {
		return nil
	}
	free := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		policy := corev1.IPFamilyPolicySingleStack
		switch {
		case old != nil && old.Spec.IPFamilyPolicy != nil:
			policy = *old.Spec.IPFamilyPolicy
		case free:
			policy = corev1.IPFamilyPolicyRequireDualStack
		}
		spec.IPFamilyPolicy = &policy
	}
	if errs := validateClusterIPs(gates, spec, old); len(errs) > 0 {
		return errs
	}
	errs := fitPolicy(spec, old)
	for i, ip := range spec.ClusterIPs {
		if ip == corev1.ClusterIPNone || i < len(spec.IPFamilies) {
			continue
		}
		if f := familyOf(ip); slices.Contains(there, f) {
			spec.IPFamilies = append(spec.IPFamilies, f)
		} else {
			errs = append(errs, field.Invalid(field.NewPath("spec", "clusterIPs").Index(i), spec.ClusterIPs, string(f)+" is not configured on this cluster"))
		}
	}
	if !free && len(errs) == 0 {
		errs = fitFamilies(spec, there)
	}
	if len(errs) > 0 {
		return errs
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = there[:1:1]
	}
	// A headless service without a selector can have any families.
	if len(spec.IPFamilies) == 1 && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack && (free || len(there) == 2) {
		spec.IPFamilies = append(spec.IPFamilies, otherFamily(spec.IPFamilies[0]))
	}
	return nil
}

// fitFamilies returns errors for families that are not configured.
func fitFamilies(spec *corev1.ServiceSpec, there []corev1.IPFamily) (errs field.ErrorList) {
	at := field.NewPath("spec")
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(there) < 2 {
		errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, f := range spec.IPFamilies {
		if !slices.Contains(there, f) {
			errs = append(errs, field.Invalid(at.Child("ipFamilies").Index(i), f, "not configured on this cluster"))
		}
	}
	return errs
}

// keepsPreferDual reports whether a service with PreferDualStack keeps its families.
func keepsPreferDual(spec *corev1.ServiceSpec, old *corev1.Service) bool {
	prefers := func(p *corev1.IPFamilyPolicy) bool { return p != nil && *p == corev1.IPFamilyPolicyPreferDualStack }
	return old != nil && prefers(spec.IPFamilyPolicy) && (old.Spec.IPFamilyPolicy == nil || prefers(old.Spec.IPFamilyPolicy)) &&
		spec.Type == old.Spec.Type && hasClusterIP(spec.Type) &&
		slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs) && slices.Equal(spec.IPFamilies, old.Spec.IPFamilies)
}

// fitPolicy fits addresses and families to the policy. For SingleStack it removes the second ones
// if the update leaves them unchanged. Other conflicts are errors.
func fitPolicy(spec *corev1.ServiceSpec, old *corev1.Service) (errs field.ErrorList) {
	single := *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	bad := func(detail string) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), spec.IPFamilyPolicy, detail))
	}
	if old != nil {
		ips, families := len(old.Spec.ClusterIPs), len(old.Spec.IPFamilies)
		switch {
		case single:
			if len(spec.ClusterIPs) > 1 && slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs) {
				spec.ClusterIPs = spec.ClusterIPs[:1]
			}
			if len(spec.IPFamilies) > 1 && slices.Equal(spec.IPFamilies, old.Spec.IPFamilies) {
				spec.IPFamilies = spec.IPFamilies[:1]
			}
		default:
			if n := len(spec.ClusterIPs); n > 0 && n < ips {
				bad("must be 'SingleStack' to release the secondary cluster IP")
			}
			if n := len(spec.IPFamilies); n > 0 && n < families {
				bad("must be 'SingleStack' to release the secondary IP family")
			}
		}
	}
	if single && len(spec.ClusterIPs) == 2 {
		bad("must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified")
	}
	if single && len(spec.IPFamilies) == 2 {
		bad("must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")
	}
	return errs
}

// familyOf returns the family of a valid address.
func familyOf(ip string) corev1.IPFamily {
	if kind.IsIPv6(ip) {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func otherFamily(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
