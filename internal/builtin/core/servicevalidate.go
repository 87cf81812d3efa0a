package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

// A serviceCheck validates a service.
type serviceCheck struct {
	*corev1.Service
	old   *corev1.Service // nil on create
	gates *gate.Set
	spec  *field.Path
	errs  field.ErrorList
}

func (c *serviceCheck) invalid(at *field.Path, value any, detail string) {
	c.errs = append(c.errs, field.Invalid(at, value, detail))
}

func (c *serviceCheck) forbid(at *field.Path, detail string) {
	c.errs = append(c.errs, field.Forbidden(at, detail))
}

func (c *serviceCheck) add(errs field.ErrorList) { c.errs = append(c.errs, errs...) }

// each adds an error for each detail.
func (c *serviceCheck) each(at *field.Path, value any, details []string) {
	c.add(kind.Invalids(at, value, details))
}

func newServiceCheck(w *resource.Change) *serviceCheck {
	c := &serviceCheck{
		Service: kind.ValueOf[corev1.Service](w.Object), old: kind.ValueOf[corev1.Service](w.Old),
		gates: w.Gates, spec: field.NewPath("spec"),
	}
	c.add(kind.MetaFinalizers(w.Object))
	return c
}

// name validates the name of a new Service beyond the rule of its kind.
func (c *serviceCheck) name() {
	if c.gates.On(gate.RelaxedServiceNameValidation) || len(apivalidation.NameIsDNSLabel(c.Name, false)) > 0 {
		return
	}
	for _, wrong := range apivalidation.NameIsDNS1035Label(c.Name, false) {
		c.errs = append(c.errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, wrong))
	}
}

func validateService(_ context.Context, w *resource.Change) field.ErrorList {
	c := newServiceCheck(w)
	if c.old != nil {
		c.changed()
	} else {
		c.name()
	}
	c.annotations()
	if len(c.Spec.Ports) == 0 && !headless(&c.Spec) && c.Spec.Type != corev1.ServiceTypeExternalName {
		c.errs = append(c.errs, field.Required(c.spec.Child("ports"), ""))
	}
	c.ofType()
	c.ports()
	c.add(metavalidation.ValidateLabels(c.Spec.Selector, c.spec.Child("selector")))
	c.affinity()
	c.add(validateClusterIPs(c.gates, &c.Spec, c.old))
	c.externalIPs()
	c.add(kind.Supported(string(c.Spec.Type), c.spec.Child("type"), "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))
	c.uniquePorts()
	c.sourceRanges()
	c.loadBalancer()
	c.traffic()
	return c.errs
}

// changed validates immutable fields.
func (c *serviceCheck) changed() {
	external := c.Spec.Type == corev1.ServiceTypeExternalName || c.old.Spec.Type == corev1.ServiceTypeExternalName
	isHeadless, wasHeadless := headless(&c.Spec), headless(&c.old.Spec)
	if !external && !(isHeadless && wasHeadless) {
		c.changedIPs()
	}
	if !external && !isHeadless && !wasHeadless {
		c.changedFamilies()
	}
	class, was := c.Spec.LoadBalancerClass, c.old.Spec.LoadBalancerClass
	same := class == nil && was == nil || class != nil && was != nil && *class == *was
	if c.Spec.Type == corev1.ServiceTypeLoadBalancer && c.old.Spec.Type == c.Spec.Type && !same {
		c.invalid(c.spec.Child("loadBalancerClass"), class, "may not change once set")
	}
	c.loadBalancerClass()
	port, had := c.Spec.HealthCheckNodePort, c.old.Spec.HealthCheckNodePort
	if allocation.ChecksHealth(&c.Spec) && allocation.ChecksHealth(&c.old.Spec) && port != had && had != 0 {
		c.forbid(c.spec.Child("healthCheckNodePort"), "field is immutable")
	}
}

const (
	onceSet   = "may not change once set"
	releasing = "must be set to 'SingleStack' when releasing the secondary "
)

// changedIPs allows a second address to be added or removed. The first one is immutable.
func (c *serviceCheck) changedIPs() {
	at, ips, was := c.spec.Child("clusterIPs"), c.Spec.ClusterIPs, c.old.Spec.ClusterIPs
	if len(ips) == len(was) {
		for i := range was {
			if ips[i] != was[i] {
				c.invalid(at.Index(i), ips, onceSet)
			}
		}
		return
	}
	switch {
	case len(ips) == 0:
		c.invalid(at.Index(0), ips, "primary clusterIP can not be unset")
	case len(was) > 0 && ips[0] != was[0]:
		c.invalid(at.Index(0), ips, onceSet)
	}
	if len(was) > len(ips) && len(ips) == 1 && !c.single() {
		c.invalid(c.spec.Child("ipFamilyPolicy"), c.Spec.IPFamilyPolicy, releasing+"clusterIP")
	}
}

// changedFamilies does the same for families.
func (c *serviceCheck) changedFamilies() {
	at, families, was := c.spec.Child("ipFamilies").Index(0), c.Spec.IPFamilies, c.old.Spec.IPFamilies
	if len(families) == len(was) {
		for i := range was {
			if families[i] != was[i] {
				c.invalid(at, families, onceSet)
			}
		}
		return
	}
	if len(families) > 0 && len(was) > 0 && families[0] != was[0] {
		c.invalid(at, c.Spec.ClusterIPs, onceSet)
	}
	if len(was) > len(families) && len(families) == 1 && !c.single() {
		c.invalid(c.spec.Child("ipFamilyPolicy"), c.Spec.IPFamilyPolicy, releasing+"ipFamily")
	}
}

func (c *serviceCheck) single() bool {
	return c.Spec.IPFamilyPolicy != nil && *c.Spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
}

func (c *serviceCheck) annotations() {
	mode, hasMode := c.Annotations[corev1.AnnotationTopologyMode]
	hints, hasHints := c.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if hasMode && hasHints && mode != hints {
		c.invalid(field.NewPath("metadata", "annotations").Key(corev1.AnnotationTopologyMode), mode,
			fmt.Sprintf("must match annotations[%s] when both are specified", corev1.DeprecatedAnnotationTopologyAwareHints))
	}
}

// ofType validates fields that a type of service requires or forbids.
func (c *serviceCheck) ofType() {
	switch c.Spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		if headless(&c.Spec) {
			c.invalid(c.spec.Child("clusterIPs").Index(0), corev1.ClusterIPNone, fmt.Sprintf("may not be set to 'None' for %s services", c.Spec.Type))
		}
	case corev1.ServiceTypeExternalName:
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"clusterIPs", len(c.Spec.ClusterIPs) > 0}, {"ipFamilies", len(c.Spec.IPFamilies) > 0}, {"ipFamilyPolicy", c.Spec.IPFamilyPolicy != nil},
		} {
			if f.set {
				c.forbid(c.spec.Child(f.name), "may not be set for ExternalName services")
			}
		}
		name, at := strings.TrimSuffix(c.Spec.ExternalName, "."), c.spec.Child("externalName")
		if name == "" {
			c.errs = append(c.errs, field.Required(at, ""))
			return
		}
		c.each(at, name, validation.IsDNS1123Subdomain(name))
	}
}

func (c *serviceCheck) ports() {
	names := map[string]bool{}
	for i, port := range c.Spec.Ports {
		at := c.spec.Child("ports").Index(i)
		if port.Name != "" {
			c.each(at.Child("name"), port.Name, validation.IsDNS1123Label(port.Name))
			if names[port.Name] {
				c.errs = append(c.errs, field.Duplicate(at.Child("name"), port.Name))
			}
			names[port.Name] = true
		} else if len(c.Spec.Ports) > 1 {
			c.errs = append(c.errs, field.Required(at.Child("name"), ""))
		}
		c.each(at.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))
		c.add(kind.Supported(string(port.Protocol), at.Child("protocol"), "SCTP", "TCP", "UDP"))
		if target := port.TargetPort; target.Type == intstr.Int {
			c.each(at.Child("targetPort"), target.IntVal, validation.IsValidPortNum(int(target.IntVal)))
		} else {
			c.each(at.Child("targetPort"), target.StrVal, validation.IsValidPortName(target.StrVal))
		}
		if port.AppProtocol != nil {
			c.each(at.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol))
		}
	}
}

// A namedPort is the value in errors about duplicate ports.
type namedPort struct {
	Name        string
	Protocol    corev1.Protocol
	AppProtocol *string
	Port        int32
	TargetPort  intstr.IntOrString
	NodePort    int32
}

// uniquePorts rejects duplicate ports, and node ports where the type does not have them.
func (c *serviceCheck) uniquePorts() {
	at := c.spec.Child("ports")
	if c.Spec.Type == corev1.ServiceTypeClusterIP {
		for i, port := range c.Spec.Ports {
			if port.NodePort != 0 {
				c.forbid(at.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'")
			}
		}
	}
	seen := map[namedPort]bool{}
	for i, port := range c.Spec.Ports {
		key := namedPort{Protocol: port.Protocol, NodePort: port.NodePort}
		if port.NodePort != 0 && seen[key] {
			c.errs = append(c.errs, field.Duplicate(at.Index(i).Child("nodePort"), port.NodePort))
		}
		seen[key] = true
	}
	clear(seen)
	for i, port := range c.Spec.Ports {
		key := namedPort{Protocol: port.Protocol, Port: port.Port}
		if seen[key] {
			c.errs = append(c.errs, field.Duplicate(at.Index(i), key))
		}
		seen[key] = true
	}
}

func (c *serviceCheck) affinity() {
	at := c.spec.Child("sessionAffinity")
	c.add(kind.Supported(string(c.Spec.SessionAffinity), at, "ClientIP", "None"))
	config, at := c.Spec.SessionAffinityConfig, c.spec.Child("sessionAffinityConfig")
	switch c.Spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		if config != nil {
			c.forbid(at, "must not be set when session affinity is None")
		}
	case corev1.ServiceAffinityClientIP:
		const day = 24 * 60 * 60
		if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
			return // defaults ensure it
		}
		if seconds := *config.ClientIP.TimeoutSeconds; seconds <= 0 || seconds > day {
			c.invalid(at.Child("clientIP", "timeoutSeconds"), seconds, fmt.Sprintf("must be greater than 0 and less than %d", day))
		}
	}
}

// validateClusterIPs validates cluster IPs, families and the family policy.
func validateClusterIPs(gates *gate.Set, spec *corev1.ServiceSpec, old *corev1.Service) (errs field.ErrorList) {
	if spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	at, ips := field.NewPath("spec", "clusterIPs"), spec.ClusterIPs
	switch {
	case spec.ClusterIP == "" && len(ips) > 0:
		errs = append(errs, field.Invalid(at, ips, "must be empty when `clusterIP` is not specified"))
	case spec.ClusterIP != "" && len(ips) == 0:
		errs = append(errs, field.Required(at, ""))
	case spec.ClusterIP != "" && ips[0] != spec.ClusterIP:
		errs = append(errs, field.Invalid(at, ips, "first value must match `clusterIP`"))
	}
	errs = append(errs, validateFamilies(spec)...)
	var before []string
	if old != nil {
		before = old.Spec.ClusterIPs
	}
	valid := true
	for i, ip := range ips {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(ips) > 1 {
				valid = false
				errs = append(errs, field.Invalid(at, ips, "'None' must be the first and only value"))
			}
			continue
		}
		wrong := kind.ValidateLegacyIP(gates, at.Index(i), ip, before)
		valid = valid && len(wrong) == 0
		errs = append(errs, wrong...)
	}
	if len(ips) > 2 {
		errs = append(errs, field.Invalid(at, ips, "may only hold up to 2 values"))
	}
	if !valid {
		return errs
	}
	if len(ips) > 1 {
		dual, err := netutils.IsDualStackIPStrings(ips)
		if err != nil { // an old address is not validated again
			errs = append(errs, field.InternalError(at, fmt.Errorf("failed to check for dual stack with error:%w", err)))
		}
		if !dual {
			errs = append(errs, field.Invalid(at, ips, "may specify no more than one IP for each IP family"))
		}
	}
	if headless(spec) {
		return errs
	}
	for i := range min(len(ips), len(spec.IPFamilies)) {
		if f := spec.IPFamilies[i]; f != familyOf(ips[i]) && (f == corev1.IPv4Protocol || f == corev1.IPv6Protocol) {
			errs = append(errs, field.Invalid(at.Index(i), ips[i], fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", f, i)))
		}
	}
	return errs
}

func validateFamilies(spec *corev1.ServiceSpec) (errs field.ErrorList) {
	at := field.NewPath("spec", "ipFamilies")
	seen := map[corev1.IPFamily]bool{}
	for i, f := range spec.IPFamilies {
		if f != corev1.IPv4Protocol && f != corev1.IPv6Protocol {
			errs = append(errs, field.NotSupported(at.Index(i), f, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}))
		}
		if seen[f] {
			errs = append(errs, field.Duplicate(at.Index(i), f))
		}
		seen[f] = true
	}
	policies := []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack}
	if p := spec.IPFamilyPolicy; p != nil && !slices.Contains(policies, *p) {
		errs = append(errs, field.NotSupported(field.NewPath("spec", "ipFamilyPolicy"), *p, policies))
	}
	return errs
}

func (c *serviceCheck) externalIPs() {
	var before []string
	if c.old != nil {
		before = c.old.Spec.ExternalIPs
	}
	for i, ip := range c.Spec.ExternalIPs {
		at := c.spec.Child("externalIPs").Index(i)
		if errs := kind.ValidateLegacyIP(c.gates, at, ip, before); len(errs) > 0 {
			c.add(errs)
			continue
		}
		if loopback(ip) {
			c.invalid(at, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
		}
		c.add(kind.ValidateReachable(at, ip))
	}
}

func loopback(ip string) bool { return netutils.ParseIPSloppy(ip).IsLoopback() }

// sourceRanges validates the source ranges of a load balancer, in the field or the annotation.
func (c *serviceCheck) sourceRanges() {
	ranges, annotation := c.spec.Child("LoadBalancerSourceRanges"), field.NewPath("metadata", "annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
	said, annotated := c.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
	balances := c.Spec.Type == corev1.ServiceTypeLoadBalancer
	if len(c.Spec.LoadBalancerSourceRanges) > 0 {
		if !balances {
			c.forbid(ranges, onlyLoadBalancer)
		}
		var before []string
		if c.old != nil {
			for _, r := range c.old.Spec.LoadBalancerSourceRanges {
				before = append(before, strings.TrimSpace(r))
			}
		}
		for i, r := range c.Spec.LoadBalancerSourceRanges {
			c.add(kind.ValidateLegacyCIDR(c.gates, ranges.Index(i), strings.TrimSpace(r), before))
		}
		return
	}
	if annotated && !balances {
		c.forbid(annotation, onlyLoadBalancer)
	}
	if c.old != nil && c.old.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey] == said {
		return
	}
	if said = strings.TrimSpace(said); said != "" {
		for r := range strings.SplitSeq(said, ",") {
			c.add(kind.ValidateLegacyCIDR(c.gates, annotation, strings.TrimSpace(r), nil))
		}
	}
}

func (c *serviceCheck) loadBalancer() {
	if c.Spec.AllocateLoadBalancerNodePorts != nil && c.Spec.Type != corev1.ServiceTypeLoadBalancer {
		c.forbid(c.spec.Child("allocateLoadBalancerNodePorts"), onlyLoadBalancer)
	}
	if c.old == nil {
		c.loadBalancerClass()
	}
}

func (c *serviceCheck) loadBalancerClass() {
	class, at := c.Spec.LoadBalancerClass, c.spec.Child("loadBalancerClass")
	switch {
	case class == nil:
	case c.Spec.Type == corev1.ServiceTypeLoadBalancer:
		c.each(at, *class, validation.IsQualifiedName(*class))
	default:
		c.forbid(at, onlyLoadBalancer)
	}
}

// traffic validates the traffic policies.
func (c *serviceCheck) traffic() {
	policy, at := string(c.Spec.ExternalTrafficPolicy), c.spec.Child("externalTrafficPolicy")
	switch {
	case accessible(c.Spec.Type, c.Spec.ExternalIPs):
		c.add(kind.Supported(policy, at, "Cluster", "Local"))
	case policy != "":
		c.invalid(at, policy, "may only be set for externally-accessible services")
	}
	if port, at := c.Spec.HealthCheckNodePort, c.spec.Child("healthCheckNodePort"); port != 0 {
		if allocation.ChecksHealth(&c.Spec) {
			c.each(at, port, validation.IsValidPortNum(int(port)))
		} else {
			c.invalid(at, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
		}
	} else if allocation.ChecksHealth(&c.Spec) {
		c.errs = append(c.errs, field.Required(at, ""))
	}
	internal := []corev1.ServiceInternalTrafficPolicy{corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal}
	if p := c.Spec.InternalTrafficPolicy; p != nil && !slices.Contains(internal, *p) {
		c.errs = append(c.errs, field.NotSupported(c.spec.Child("internalTrafficPolicy"), *p, internal))
	}
	known := []string{corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode}
	if d := c.Spec.TrafficDistribution; d != nil && !slices.Contains(known, *d) {
		c.errs = append(c.errs, field.NotSupported(c.spec.Child("trafficDistribution"), *d, known))
	}
}

// validateServiceStatus validates the load balancer status.
func validateServiceStatus(_ context.Context, w *resource.Change) field.ErrorList {
	c := newServiceCheck(w)
	all, of := c.Status.LoadBalancer.Ingress, field.NewPath("status", "loadBalancer", "ingress")
	if len(all) > 0 && c.Spec.Type != corev1.ServiceTypeLoadBalancer {
		c.forbid(of, "may only be used when `spec.type` is 'LoadBalancer'")
		return c.errs
	}
	var before []string
	for _, i := range c.old.Status.LoadBalancer.Ingress {
		before = append(before, i.IP)
	}
	for i, ingress := range all {
		at := of.Index(i)
		if ingress.IP != "" {
			c.add(kind.ValidateLegacyIP(c.gates, at.Child("ip"), ingress.IP, before))
		}
		switch mode, at := ingress.IPMode, at.Child("ipMode"); {
		case mode == nil && ingress.IP != "":
			c.errs = append(c.errs, field.Required(at, "must be specified when `ip` is set"))
		case mode != nil && ingress.IP == "":
			c.forbid(at, "may not be specified when `ip` is not set")
		case mode != nil && *mode != corev1.LoadBalancerIPModeProxy && *mode != corev1.LoadBalancerIPModeVIP:
			c.errs = append(c.errs, field.NotSupported(at, *mode, []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP}))
		}
		if ingress.Hostname != "" {
			c.each(at.Child("hostname"), ingress.Hostname, validation.IsDNS1123Subdomain(ingress.Hostname))
			if netutils.ParseIPSloppy(ingress.Hostname) != nil {
				c.invalid(at.Child("hostname"), ingress.Hostname, "must be a DNS name, not an IP address")
			}
		}
	}
	return c.errs
}
