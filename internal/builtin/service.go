package builtin

import (
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// A Service is a name for addresses that others, or EndpointSlices, say. It is
// given no address of its own: there is nothing that would route it.
func services() *resource.Definition {
	docs := corev1.ServiceSpec{}.SwaggerDoc()
	cell := func(f func(spec, status map[string]any) string) func(map[string]any) any {
		return func(obj map[string]any) any { return f(tree(obj, "spec"), tree(obj, "status")) }
	}
	d := kind[corev1.Service, corev1.ServiceList](resource.Definition{
		Plural: "services", Singular: "service", Kind: "Service", ShortNames: []string{"svc"}, Categories: []string{"all"},
		Namespaced: true, GroupPriority: corePriority,
		StoragePrefix:       "/registry/services/specs/",
		AllowCreateOnUpdate: true, AllowUnconditionalUpdate: true, ReturnsDeleted: true,
		ValidateName: apivalidation.NameIsDNSLabel,
		Prepare:      prepareService,
		Validate:     validateService,
	}, &resource.Version{
		Keep:  keepServiceStatus,
		Reset: []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "status", Verbs: []string{"get", "patch", "update"}, Sets: []string{"metadata", "status"},
			Keep: func(obj, old map[string]any) { put(obj, "spec", old["spec"]) },
		}},
		SelectableFields: map[string]func(map[string]any) string{
			"spec.clusterIP": func(obj map[string]any) string { return text(obj, "spec", "clusterIP") },
			"spec.type":      func(obj map[string]any) string { return text(obj, "spec", "type") },
		},
		Columns: []resource.Column{
			{Name: "Type", Type: "string", Description: docs["type"], Cell: cell(func(spec, _ map[string]any) string { return text(spec, "type") })},
			{Name: "Cluster-IP", Type: "string", Description: docs["clusterIP"], Cell: cell(clusterIP)},
			{Name: "External-IP", Type: "string", Description: docs["externalIPs"], Cell: cell(externalIP)},
			{Name: "Port(s)", Type: "string", Description: docs["ports"], Cell: cell(servicePorts)},
			ageColumn(),
			{Name: "Selector", Type: "string", Priority: 1, Description: docs["selector"], Cell: cell(func(spec, _ map[string]any) string {
				return labels.FormatLabels(pairs(spec, "selector"))
			})},
		},
	})
	whenDecoded(d, defaultService)
	return d
}

func keepServiceStatus(obj, old map[string]any) { put(obj, "status", old["status"]) }

// pairs returns the map of strings at a path.
func pairs(obj map[string]any, path ...string) map[string]string {
	out := map[string]string{}
	for k, v := range tree(obj, path...) {
		out[k], _ = v.(string)
	}
	return out
}

// texts returns the list of strings at a path.
func texts(obj map[string]any, path ...string) []string {
	var out []string
	for _, v := range list(obj, path...) {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

func clusterIP(spec, _ map[string]any) string {
	if ips := texts(spec, "clusterIPs"); len(ips) > 0 {
		return ips[0]
	}
	return "<none>"
}

func externalIP(spec, status map[string]any) string {
	shown := texts(spec, "externalIPs")
	instead := "<none>"
	switch corev1.ServiceType(text(spec, "type")) {
	case corev1.ServiceTypeExternalName:
		return text(spec, "externalName")
	case corev1.ServiceTypeLoadBalancer:
		var given []string
		for _, i := range list(status, "loadBalancer", "ingress") {
			ingress, _ := i.(map[string]any)
			if at := text(ingress, "ip") + text(ingress, "hostname"); at != "" {
				given = append(given, at)
			}
		}
		shown, instead = append(given, shown...), "<pending>"
	}
	if len(shown) == 0 {
		return instead
	}
	return strings.Join(shown, ",")
}

func servicePorts(spec, _ map[string]any) string {
	var out []string
	for _, p := range list(spec, "ports") {
		port, _ := p.(map[string]any)
		if node, _ := port["nodePort"].(int64); node > 0 {
			out = append(out, fmt.Sprintf("%v:%d/%v", port["port"], node, port["protocol"]))
			continue
		}
		out = append(out, fmt.Sprintf("%v/%v", port["port"], port["protocol"]))
	}
	if len(out) == 0 {
		return "<none>"
	}
	return strings.Join(out, ",")
}

// defaultService fills in what belongs to who writes the service.
func defaultService(obj map[string]any) {
	spec := child(obj, "spec")
	setDefault(spec, "type", string(corev1.ServiceTypeClusterIP))
	defaultAffinity(spec)
	for _, p := range list(spec, "ports") {
		port, _ := p.(map[string]any)
		setDefault(port, "protocol", string(corev1.ProtocolTCP))
		if target := port["targetPort"]; target == nil || target == int64(0) || target == "" {
			port["targetPort"] = port["port"]
		}
	}
	cluster := string(corev1.ServiceExternalTrafficPolicyCluster)
	if reachable(spec) {
		setDefault(spec, "externalTrafficPolicy", cluster)
	}
	switch corev1.ServiceType(text(spec, "type")) {
	case corev1.ServiceTypeLoadBalancer:
		defaultLoadBalancer(obj, spec)
		fallthrough
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		setMissing(spec, "internalTrafficPolicy", cluster)
	}
}

func defaultAffinity(spec map[string]any) {
	setDefault(spec, "sessionAffinity", string(corev1.ServiceAffinityNone))
	switch corev1.ServiceAffinity(text(spec, "sessionAffinity")) {
	case corev1.ServiceAffinityNone:
		delete(spec, "sessionAffinityConfig")
	case corev1.ServiceAffinityClientIP:
		if value(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds") == nil {
			spec["sessionAffinityConfig"] = object.Tree{"clientIP": object.Tree{"timeoutSeconds": int64(corev1.DefaultClientIPServiceAffinitySeconds)}}
		}
	}
}

func defaultLoadBalancer(obj, spec map[string]any) {
	setMissing(spec, "allocateLoadBalancerNodePorts", true)
	for _, i := range list(obj, "status", "loadBalancer", "ingress") {
		if ingress, _ := i.(map[string]any); text(ingress, "ip") != "" {
			setMissing(ingress, "ipMode", string(corev1.LoadBalancerIPModeVIP))
		}
	}
}

// prepareService keeps the cluster IP, which is said twice.
func prepareService(obj, old map[string]any) {
	spec := child(obj, "spec")
	if old != nil {
		dropUnused(obj, spec, tree(old, "spec"))
	}
	child(child(obj, "status"), "loadBalancer")
	if !addressed(spec) {
		delete(spec, "internalTrafficPolicy")
		return
	}
	if text(spec, "clusterIP") == "" && len(list(spec, "clusterIPs")) == 0 && text(old, "spec", "type") != string(corev1.ServiceTypeExternalName) {
		put(spec, "clusterIP", value(old, "spec", "clusterIP"))
		put(spec, "clusterIPs", value(old, "spec", "clusterIPs"))
	}
	switch ips := texts(spec, "clusterIPs"); {
	case text(spec, "clusterIP") == "" && len(ips) > 0:
		spec["clusterIP"] = ips[0]
	case text(spec, "clusterIP") != "" && len(ips) == 0:
		spec["clusterIPs"] = []any{spec["clusterIP"]}
	}
}

// dropUnused drops what a service of another type had a use for, unless the client
// has changed it, too: that is a mistake to be told.
func dropUnused(obj, spec, was map[string]any) {
	drop := func(used func(spec map[string]any) bool, names ...string) {
		changed := func(name string) bool { return !object.Equal(spec[name], was[name]) }
		if !used(was) || used(spec) || slices.ContainsFunc(names, changed) {
			return
		}
		for _, name := range names {
			delete(spec, name)
		}
	}
	drop(addressed, "clusterIP", "clusterIPs")
	drop(addressed, "ipFamilies")
	drop(addressed, "ipFamilyPolicy")
	drop(checked, "healthCheckNodePort")
	drop(balanced, "allocateLoadBalancerNodePorts")
	drop(balanced, "loadBalancerClass")
	drop(reachable, "externalTrafficPolicy")
	if onNodes(was) && !onNodes(spec) {
		dropNodePorts(spec, was)
	}
	if balanced(was) && !balanced(spec) {
		delete(child(obj, "status"), "loadBalancer")
	}
}

// dropNodePorts drops the ports of nodes, if there is none that the client added.
func dropNodePorts(spec, was map[string]any) {
	var had []any
	for _, p := range list(was, "ports") {
		port, _ := p.(map[string]any)
		had = append(had, port["nodePort"])
	}
	for _, p := range list(spec, "ports") {
		if port, _ := p.(map[string]any); port["nodePort"] != nil && !slices.Contains(had, port["nodePort"]) {
			return
		}
	}
	for _, p := range list(spec, "ports") {
		port, _ := p.(map[string]any)
		delete(port, "nodePort")
	}
}

// What the type of a service has a use for.

func addressed(spec map[string]any) bool {
	return text(spec, "type") != string(corev1.ServiceTypeExternalName)
}

func balanced(spec map[string]any) bool {
	return text(spec, "type") == string(corev1.ServiceTypeLoadBalancer)
}

func checked(spec map[string]any) bool {
	return balanced(spec) && text(spec, "externalTrafficPolicy") == string(corev1.ServiceExternalTrafficPolicyLocal)
}

func onNodes(spec map[string]any) bool {
	return balanced(spec) || text(spec, "type") == string(corev1.ServiceTypeNodePort)
}

func reachable(spec map[string]any) bool {
	clusterIP := text(spec, "type") == string(corev1.ServiceTypeClusterIP)
	return onNodes(spec) || clusterIP && len(list(spec, "externalIPs")) > 0
}

func validateService(obj, old map[string]any) field.ErrorList {
	errs := metaFinalizers(obj)
	spec, at := tree(obj, "spec"), field.NewPath("spec")
	typ, ip := text(spec, "type"), text(spec, "clusterIP")
	headless := ip == corev1.ClusterIPNone
	if ip != "" && !headless && net.ParseIP(ip) == nil {
		return append(errs, field.Invalid(at.Child("clusterIPs").Index(0), ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
	}
	external := typ == string(corev1.ServiceTypeExternalName)
	if len(list(spec, "ports")) == 0 && !headless && !external {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	errs = append(errs, validateServicePorts(list(spec, "ports"), at.Child("ports"))...)
	errs = append(errs, supported(text(spec, "sessionAffinity"), at.Child("sessionAffinity"), "ClientIP", "None")...)
	errs = append(errs, supported(typ, at.Child("type"), "ClusterIP", "ExternalName", "LoadBalancer", "NodePort")...)
	errs = append(errs, metavalidation.ValidateLabels(pairs(spec, "selector"), at.Child("selector"))...)
	switch {
	case external:
		errs = append(errs, validateExternalName(spec, at)...)
	case headless && typ != string(corev1.ServiceTypeClusterIP):
		errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), ip, "may not be set to 'None' for "+typ+" services"))
	}
	if typ != string(corev1.ServiceTypeLoadBalancer) && len(list(obj, "status", "loadBalancer", "ingress")) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("status", "loadBalancer", "ingress"), "may only be used when `spec.type` is 'LoadBalancer'"))
	}
	if was := text(old, "spec", "clusterIP"); was != "" && !external && text(old, "spec", "type") != string(corev1.ServiceTypeExternalName) {
		errs = append(errs, immutable(ip, was, at.Child("clusterIP"))...)
	}
	return errs
}

func validateExternalName(spec map[string]any, at *field.Path) (errs field.ErrorList) {
	if ip := text(spec, "clusterIP"); ip != "" {
		errs = append(errs, field.Forbidden(at.Child("clusterIPs"), "may not be set when `type` is 'ExternalName'"))
	}
	name := text(spec, "externalName")
	if name == "" {
		return append(errs, field.Required(at.Child("externalName"), ""))
	}
	for _, bad := range validation.IsDNS1123Subdomain(strings.TrimSuffix(name, ".")) {
		errs = append(errs, field.Invalid(at.Child("externalName"), name, bad))
	}
	return errs
}

func validateServicePorts(ports []any, at *field.Path) (errs field.ErrorList) {
	names, numbers := map[string]bool{}, map[string]bool{}
	for i, p := range ports {
		port, _ := p.(map[string]any)
		at := at.Index(i)
		name, protocol := text(port, "name"), text(port, "protocol")
		switch {
		case name == "" && len(ports) > 1:
			errs = append(errs, field.Required(at.Child("name"), ""))
		case name != "" && names[name]:
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		case name != "":
			for _, bad := range validation.IsDNS1123Label(name) {
				errs = append(errs, field.Invalid(at.Child("name"), name, bad))
			}
		}
		number, _ := port["port"].(int64)
		for _, bad := range validation.IsValidPortNum(int(number)) {
			errs = append(errs, field.Invalid(at.Child("port"), number, bad))
		}
		errs = append(errs, supported(protocol, at.Child("protocol"), "SCTP", "TCP", "UDP")...)
		errs = append(errs, validateTargetPort(port["targetPort"], at.Child("targetPort"))...)
		key := fmt.Sprint(number, "/", protocol)
		if numbers[key] {
			errs = append(errs, field.Duplicate(at, object.Tree{"port": number, "protocol": protocol}))
		}
		names[name], numbers[key] = true, true
	}
	return errs
}

func validateTargetPort(target any, at *field.Path) (errs field.ErrorList) {
	var bad []string
	switch target := target.(type) {
	case int64:
		bad = validation.IsValidPortNum(int(target))
	case string:
		bad = validation.IsValidPortName(target)
	}
	for _, b := range bad {
		errs = append(errs, field.Invalid(at, target, b))
	}
	return errs
}

// supported checks a field that has one of some values.
func supported(value string, at *field.Path, values ...string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if !slices.Contains(values, value) {
		return field.ErrorList{field.NotSupported(at, value, values)}
	}
	return nil
}
