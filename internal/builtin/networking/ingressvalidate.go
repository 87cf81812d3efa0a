package networking

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// classAnnotation is the older form of the field ingressClassName.
const classAnnotation = "kubernetes.io/ingress.class"

func validateIngress(c *rule.Check, i, old *networkingv1.Ingress) {
	spec, at := &i.Spec, c.At("spec")
	if class, ok := i.Annotations[classAnnotation]; ok && old == nil && spec.IngressClassName != nil && class != *spec.IngressClassName {
		c.At("annotations", classAnnotation).Invalid(class, "must match `ingressClassName` when both are specified")
	}
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		at.Invalid(spec.Rules, "either `defaultBackend` or `rules` must be specified")
	}
	c.Walk(spec, "spec")
	wrongService := serviceNames(c.Gates, old)
	if spec.DefaultBackend != nil {
		validateBackend(at.At("defaultBackend"), spec.DefaultBackend, wrongService)
	}
	anyRules := wildcardHasInvalidRules(c, old)
	for n := range spec.Rules {
		r, at := &spec.Rules[n], at.At("rules", n)
		isWildcard := validateHost(at.At("host"), r.Host)
		if r.HTTP != nil && !(isWildcard && anyRules) {
			validatePaths(at.At("http", "paths"), r.HTTP.Paths, wrongService)
		}
	}
	anySecret := hasInvalidSecret(old)
	for n := range spec.TLS {
		tls, at := &spec.TLS[n], at.At("tls", n)
		for h, host := range tls.Hosts {
			at.At("hosts", h).Invalids(host, wrongName(host))
		}
		if tls.SecretName != "" && !anySecret {
			at.At("secretName").Invalids(tls.SecretName, apivalidation.NameIsDNSSubdomain(tls.SecretName, false))
		}
	}
}

func hasInvalidSecret(old *networkingv1.Ingress) bool {
	if old == nil {
		return false
	}
	for _, tls := range old.Spec.TLS {
		if tls.SecretName != "" && len(apivalidation.NameIsDNSSubdomain(tls.SecretName, false)) > 0 {
			return true
		}
	}
	return false
}

// wildcardHasInvalidRules reports whether an old Ingress has invalid rules for wildcard hosts,
// which were once not validated.
func wildcardHasInvalidRules(c *rule.Check, old *networkingv1.Ingress) bool {
	if old == nil {
		return false
	}
	check := rule.NewCheck(c, c.Change, nil)
	for n := range old.Spec.Rules {
		if r := &old.Spec.Rules[n]; strings.Contains(r.Host, "*") && r.HTTP != nil {
			if len(r.HTTP.Paths) == 0 {
				return true
			}
			validatePaths(check, r.HTTP.Paths, apivalidation.NameIsDNS1035Label)
		}
	}
	return len(check.Errors()) > 0
}

// wrongName returns the errors of a host name, which may have a wildcard.
func wrongName(host string) []string {
	if strings.Contains(host, "*") {
		return validation.IsWildcardDNS1123Subdomain(host)
	}
	return validation.IsDNS1123Subdomain(host)
}

const noAddress = "must be a DNS name, not an IP address"

// validateHost validates a host and reports whether it has a wildcard.
func validateHost(c *rule.Check, host string) bool {
	if host == "" {
		return false
	}
	if netutils.ParseIPSloppy(host) != nil {
		c.Invalid(host, noAddress)
	}
	c.Invalids(host, wrongName(host))
	return strings.Contains(host, "*")
}

func validatePaths(c *rule.Check, paths []networkingv1.HTTPIngressPath, wrongService apivalidation.ValidateNameFunc) {
	for i := range paths {
		p, c := &paths[i], c.At(i)
		if p.PathType == nil {
			c.At("pathType").Required("pathType must be specified")
			continue
		}
		validatePath(c, p)
		validateBackend(c.At("backend"), &p.Backend, wrongService)
	}
}

func validatePath(c *rule.Check, p *networkingv1.HTTPIngressPath) {
	at := c.At("path")
	switch *p.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !strings.HasPrefix(p.Path, "/") {
			at.Invalid(p.Path, "must be an absolute path")
		}
		for _, no := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, no) {
				at.Invalid(p.Path, fmt.Sprintf("must not contain '%s'", no))
			}
		}
		for _, no := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, no) {
				at.Invalid(p.Path, fmt.Sprintf("cannot end with '%s'", no))
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			at.Invalid(p.Path, "must be an absolute path")
		}
	default:
		rule.NotSupported(c.At("pathType"), *p.PathType, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)
	}
}

func validateBackend(c *rule.Check, b *networkingv1.IngressBackend, wrongService apivalidation.ValidateNameFunc) {
	switch {
	case b.Resource != nil && b.Service != nil:
		c.Invalid("", "cannot set both resource and service backends")
	case b.Resource != nil:
		validateReference(c.At("resource"), b.Resource)
	case b.Service != nil:
		validateServiceBackend(c, b.Service, wrongService)
	default:
		c.Invalid("", "resource or service backend is required")
	}
}

func validateReference(c *rule.Check, r *corev1.TypedLocalObjectReference) {
	if r.APIGroup != nil {
		c.At("apiGroup").Invalids(*r.APIGroup, validation.IsDNS1123Subdomain(*r.APIGroup))
	}
	for name, value := range map[string]string{"kind": r.Kind, "name": r.Name} {
		if value == "" {
			c.At(name).Required("")
			continue
		}
		c.At(name).Invalids(value, content.IsPathSegmentName(value))
	}
}

// serviceNames returns the rule for names of Services. An old Ingress with a name that the strict rule rejects keeps
// the other one.
func serviceNames(gates *gate.Set, old *networkingv1.Ingress) apivalidation.ValidateNameFunc {
	if gates.On(gate.RelaxedServiceNameValidation) || old != nil && hasRelaxedName(&old.Spec) {
		return apivalidation.NameIsDNSLabel
	}
	return apivalidation.NameIsDNS1035Label
}

// hasRelaxedName reports whether a backend has a name of a Service that only the relaxed rule allows.
func hasRelaxedName(spec *networkingv1.IngressSpec) bool {
	relaxed := func(b *networkingv1.IngressBackend) bool {
		return b != nil && b.Service != nil && len(apivalidation.NameIsDNSLabel(b.Service.Name, false)) == 0 &&
			len(apivalidation.NameIsDNS1035Label(b.Service.Name, false)) > 0
	}
	return relaxed(spec.DefaultBackend) || slices.ContainsFunc(spec.Rules, func(r networkingv1.IngressRule) bool {
		return r.HTTP != nil && slices.ContainsFunc(r.HTTP.Paths, func(p networkingv1.HTTPIngressPath) bool { return relaxed(&p.Backend) })
	})
}

func validateServiceBackend(c *rule.Check, s *networkingv1.IngressServiceBackend, wrong apivalidation.ValidateNameFunc) {
	name := c.At("service", "name")
	if s.Name == "" {
		name.Required("")
	} else {
		name.Invalids(s.Name, wrong(s.Name, false))
	}
	port := c.At("service", "port")
	switch {
	case s.Port.Name != "" && s.Port.Number != 0:
		c.Invalid("", "cannot set both port name & port number")
	case s.Port.Name != "":
		port.At("name").Invalids(s.Port.Name, validation.IsValidPortName(s.Port.Name))
	case s.Port.Number != 0:
		port.At("number").Invalids(s.Port.Number, validation.IsValidPortNum(int(s.Port.Number)))
	default:
		c.Required("port name or number is required")
	}
}

func validateIngressStatus(c *rule.Check, i, old *networkingv1.Ingress) {
	var there []string
	for _, in := range old.Status.LoadBalancer.Ingress {
		there = append(there, in.IP)
	}
	for n, in := range i.Status.LoadBalancer.Ingress {
		at := c.At("status", "loadBalancer", "ingress", n)
		if in.IP != "" {
			c.Add(kind.ValidateLegacyIP(c.Gates, at.At("ip").Path(), in.IP, there)...)
		}
		if in.Hostname == "" {
			continue
		}
		at.At("hostname").Invalids(in.Hostname, validation.IsDNS1123Subdomain(in.Hostname))
		if netutils.ParseIPSloppy(in.Hostname) != nil {
			at.At("hostname").Invalid(in.Hostname, noAddress)
		}
	}
}

func warnOfIngress(c *rule.Check, i, old *networkingv1.Ingress) {
	if _, ok := i.Annotations[classAnnotation]; ok && old == nil && i.Spec.IngressClassName == nil {
		c.Warn("annotation %q is deprecated, please use 'spec.ingressClassName' instead", classAnnotation)
	}
}

func warnOfIngressStatus(c *rule.Check, i, _ *networkingv1.Ingress) {
	for n, in := range i.Status.LoadBalancer.Ingress {
		if in.IP != "" {
			c.AddWarnings(validation.GetWarningsForIP(c.At("status", "loadBalancer", "ingress", n).Path(), in.IP)...)
		}
	}
}
