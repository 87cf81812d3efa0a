package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
)

// defaultFamily is the one family of addresses that services have.
const defaultFamily = corev1.IPv4Protocol

// defaultService fills in what belongs to who writes the service.
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

// accessible reports whether a service can be reached from outside the cluster.
func accessible(typ corev1.ServiceType, externalIPs []string) bool {
	switch typ {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		return true
	}
	return typ == corev1.ServiceTypeClusterIP && len(externalIPs) > 0
}

// hasClusterIP reports whether services of a type that there is have an address.
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

// revertService leaves the status to its subresource, keeps what the server once
// filled in where the writer left it out, drops what belongs to the type that the
// service had before, and fills in what is left.
func revertService(obj, old map[string]any) {
	kind.Put(obj, "status", old["status"])
	s, was := kind.ValueOf[corev1.Service](obj), kind.ValueOf[corev1.Service](old)
	if was != nil {
		keepAllocated(&s.Spec, &was.Spec)
	}
	keepClusterIPs(&s.Spec, was)
	// What cannot be filled in is left as it is: validateService says why.
	if filled := s.Spec; len(fillFamilies(&filled, was)) == 0 {
		s.Spec = filled
	}
	if was != nil {
		dropOfOtherType(s, &was.Spec)
	}
	// What was made of the object can be made into one again.
	if t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s); err == nil {
		obj["spec"], obj["status"] = t["spec"], t["status"]
	}
}

// keepAllocated keeps addresses and ports, so that a service may be written again as
// it was when it had none.
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
	if checksHealth(spec) && checksHealth(old) && spec.HealthCheckNodePort == 0 {
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

func checksHealth(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// keepNodePorts keeps the node port of a port that has its name still, if no other
// port took it.
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

// keepClusterIPs brings clusterIP and clusterIPs together where a client that knows
// only the first wrote that.
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

// fillFamilies fills in the families of the addresses and how many there are to be,
// and returns why it cannot. What it made, it leaves as it is.
func fillFamilies(spec *corev1.ServiceSpec, old *corev1.Service) field.ErrorList {
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
	if errs := validateClusterIPs(spec, old); len(errs) > 0 {
		return errs
	}
	errs := fitPolicy(spec, old)
	for i, ip := range spec.ClusterIPs {
		if ip == corev1.ClusterIPNone || i < len(spec.IPFamilies) {
			continue
		}
		if f := familyOf(ip); f == defaultFamily {
			spec.IPFamilies = append(spec.IPFamilies, f)
		} else {
			errs = append(errs, field.Invalid(field.NewPath("spec", "clusterIPs").Index(i), spec.ClusterIPs, string(f)+" is not configured on this cluster"))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	if free {
		// Its endpoints are those that others say, of whatever family.
		if len(spec.IPFamilies) == 0 {
			spec.IPFamilies = []corev1.IPFamily{defaultFamily}
		}
		if len(spec.IPFamilies) == 1 && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
			spec.IPFamilies = append(spec.IPFamilies, otherFamily(spec.IPFamilies[0]))
		}
		return nil
	}
	return oneFamily(spec)
}

// oneFamily fills in the one family that there is, and refuses others.
func oneFamily(spec *corev1.ServiceSpec) (errs field.ErrorList) {
	at := field.NewPath("spec")
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, f := range spec.IPFamilies {
		if f != defaultFamily {
			errs = append(errs, field.Invalid(at.Child("ipFamilies").Index(i), f, "not configured on this cluster"))
		}
	}
	if len(errs) == 0 && len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{defaultFamily}
	}
	return errs
}

// keepsPreferDual reports whether a service that takes two families where it can get
// them stays as it is.
func keepsPreferDual(spec *corev1.ServiceSpec, old *corev1.Service) bool {
	prefers := func(p *corev1.IPFamilyPolicy) bool { return p != nil && *p == corev1.IPFamilyPolicyPreferDualStack }
	return old != nil && prefers(spec.IPFamilyPolicy) && (old.Spec.IPFamilyPolicy == nil || prefers(old.Spec.IPFamilyPolicy)) &&
		spec.Type == old.Spec.Type && hasClusterIP(spec.Type) &&
		slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs) && slices.Equal(spec.IPFamilies, old.Spec.IPFamilies)
}

// fitPolicy brings addresses and families in line with a policy of one, and returns
// where they are not in line with it.
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

// familyOf is the family of an address that is one.
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

// dropOfOtherType drops what belongs to the type that the service had, if the writer
// left it as it was. What the writer changed is for validation to refuse.
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
	if checksHealth(old) && !checksHealth(spec) && spec.HealthCheckNodePort == old.HealthCheckNodePort {
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

// drop drops a field that is what it was.
func drop[T comparable](now **T, old *T) {
	if *now != nil && old != nil && **now == *old {
		*now = nil
	}
}

// dropNodePorts drops all node ports unless one of them is new.
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

// canonicalizeService drops what is validated but means nothing to a service that is a
// name only.
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
