package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"

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
		StoragePrefix:       resource.BuiltInPrefix("services/specs"),
		AllowCreateOnUpdate: true, AllowUnconditionalUpdate: true, ReturnsDeleted: true,
		ValidateName: apivalidation.NameIsDNSLabel,
		Validate:     validateService,
		Warn:         warnOfService,
		Canonicalize: canonicalizeService,
	}, &resource.Version{
		Keep:  keepService,
		Reset: []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "status", Verbs: []string{"get", "patch", "update"}, Sets: []string{"metadata", "status"},
			Keep:     func(obj, old map[string]any) { put(obj, "spec", old["spec"]) },
			Validate: validateServiceStatus, Warn: warnOfServiceStatus,
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
