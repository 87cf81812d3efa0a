package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// services returns the kind Service. GiveAddresses adds the allocation of cluster IPs and node
// ports.
func services(o Dependencies) *resource.Definition {
	visit := &serviceVisit{pods: o.Pods, slices: o.EndpointSlices, network: o.Network}
	visit.services = kind.New(resource.Definition{
		Plural: "services", Singular: "service", Kind: "Service", ShortNames: []string{"svc"}, Categories: []string{"all"},
		Namespaced:     true,
		StoragePrefix:  resource.BuiltInPrefix("services/specs"),
		ReturnsDeleted: true,
		Strategy: resource.Strategy{
			AllowCreateOnUpdate: true, AllowUnconditionalUpdate: true,
			ValidateName: apivalidation.NameIsDNSLabel,
			Validate:     validateService,
			Warn:         resource.Looking(warnOfService),
			Canonicalize: canonicalizeService,
		},
	}, kind.VersionOf[*corev1.Service, *corev1.ServiceList](&resource.Version{
		Name:        "v1",
		Revert:      resource.Changing(revertService),
		ResetFields: []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "proxy", Verbs: proxyVerbs, Kind: corev1.SchemeGroupVersion.WithKind("ServiceProxyOptions"),
			Connecter: visit, PathsBelow: true, Options: corev1.ServiceProxyOptions{}, ReadOptions: kind.ReadOptions[corev1.ServiceProxyOptions](corev1.SchemeGroupVersion.WithKind("ServiceProxyOptions")),
		}, {
			Name: "status", Verbs: []string{"get", "patch", "update"}, Fields: []string{"metadata", "status"},
			Revert:   resource.Changing(func(obj, old map[string]any) { kind.Put(obj, "spec", old["spec"]) }),
			Validate: validateServiceStatus, Warn: resource.Looking(warnOfServiceStatus),
		}},
		SelectableFields: map[string]func(map[string]any) string{
			"spec.clusterIP": func(obj map[string]any) string { return kind.Text(obj, "spec", "clusterIP") },
			"spec.type":      func(obj map[string]any) string { return kind.Text(obj, "spec", "type") },
		},
		Columns: serviceColumns,
	}).WhenDecoded(defaultService))
	return visit.services
}

func serviceColumns() []view.Column {
	cell := func(f func(spec, status map[string]any) string) func(map[string]any) any {
		return func(obj map[string]any) any { return f(kind.Tree(obj, "spec"), kind.Tree(obj, "status")) }
	}
	docs := corev1.ServiceSpec{}.SwaggerDoc()
	return []view.Column{
		{Name: "Type", Type: "string", Description: docs["type"], Cell: cell(func(spec, _ map[string]any) string { return kind.Text(spec, "type") })},
		{Name: "Cluster-IP", Type: "string", Description: docs["clusterIP"], Cell: cell(clusterIP)},
		{Name: "External-IP", Type: "string", Description: docs["externalIPs"], Cell: cell(externalIP)},
		{Name: "Port(s)", Type: "string", Description: docs["ports"], Cell: cell(servicePorts)},
		kind.AgeColumn(),
		{Name: "Selector", Type: "string", Priority: 1, Description: docs["selector"], Cell: cell(func(spec, _ map[string]any) string {
			return labels.FormatLabels(kind.Pairs(spec, "selector"))
		})},
	}
}

func clusterIP(spec, _ map[string]any) string {
	if ips := kind.Texts(spec, "clusterIPs"); len(ips) > 0 {
		return ips[0]
	}
	return "<none>"
}

func externalIP(spec, status map[string]any) string {
	shown, instead := kind.Texts(spec, "externalIPs"), "<none>"
	switch corev1.ServiceType(kind.Text(spec, "type")) {
	case corev1.ServiceTypeExternalName:
		return kind.Text(spec, "externalName")
	case corev1.ServiceTypeLoadBalancer:
		shown, instead = append(kind.IngressPoints(status), shown...), "<pending>"
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
	default:
		return "<unknown>"
	}
	if len(shown) == 0 {
		return instead
	}
	return strings.Join(shown, ",")
}

func servicePorts(spec, _ map[string]any) string {
	var out []string
	for _, p := range kind.List(spec, "ports") {
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
