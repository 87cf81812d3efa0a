package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

const (
	maxEndpoints         = 1000
	maxEndpointAddresses = 100
	maxEndpointPorts     = 20000
	maxEndpointHints     = 8 // of each type
	shownEndpoints       = 3 // in a Table
)

func endpointSlices() *resource.Definition {
	return kind.New(resource.Definition{
		Group: discoveryv1.GroupName, Plural: "endpointslices", Singular: "endpointslice", Kind: "EndpointSlice",
		Namespaced: true, HasGeneration: true, CountsDropped: true,
		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			ValidateName:             apivalidation.NameIsDNSSubdomain,
			Validate:                 validateEndpointSlice,
			Warn:                     resource.Looking(warnOfEndpointSlice),
		},
	}, kind.VersionOf[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList](&resource.Version{Name: "v1", Revert: resource.Changing(revertEndpointSlice), Columns: endpointSliceColumns}).WhenDecoded(defaultEndpointSlice))
}

func endpointSliceColumns() []view.Column {
	docs := discoveryv1.EndpointSlice{}.SwaggerDoc()
	return []view.Column{
		{
			Name: "AddressType", Type: "string", Description: docs["addressType"],
			Cell: func(obj map[string]any) any { return kind.Text(obj, "addressType") },
		},
		{Name: "Ports", Type: "string", Description: docs["ports"], Cell: endpointPorts},
		{Name: "Endpoints", Type: "string", Description: docs["endpoints"], Cell: endpointAddresses},
		kind.AgeColumn(),
	}
}

func endpointPorts(obj map[string]any) any {
	var all []string
	for _, p := range kind.List(obj, "ports") {
		port, _ := p.(map[string]any)
		shown := "*"
		if n, ok := port["port"].(int64); ok {
			shown = fmt.Sprint(n)
		} else if name, ok := port["name"].(string); ok {
			shown = name
		}
		all = append(all, shown)
	}
	return some(all)
}

func endpointAddresses(obj map[string]any) any {
	var all []string
	for _, e := range kind.List(obj, "endpoints") {
		endpoint, _ := e.(map[string]any)
		all = append(all, kind.Texts(endpoint, "addresses")...)
	}
	return some(all)
}

// some joins the first few elements of a list.
func some(all []string) string {
	if n := len(all); n > shownEndpoints {
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:shownEndpoints], ","), n-shownEndpoints)
	}
	if shown := strings.Join(all, ","); shown != "" {
		return shown
	}
	return "<unset>"
}

func defaultEndpointSlice(obj map[string]any) {
	for _, p := range kind.List(obj, "ports") {
		port, _ := p.(map[string]any)
		kind.SetMissing(port, "name", "")
		kind.SetMissing(port, "protocol", string(corev1.ProtocolTCP))
	}
}

// revertEndpointSlice drops fields that only a removed version can write. A change of labels
// increments the generation.
func revertEndpointSlice(obj, old map[string]any) {
	if old != nil && !maps.Equal(kind.Pairs(obj, "metadata", "labels"), kind.Pairs(old, "metadata", "labels")) {
		object.SetGeneration(obj, object.Generation(old)+1)
	}
	if old != nil && object.Equal(obj["endpoints"], old["endpoints"]) {
		return
	}
	nodes := map[string]bool{}
	for _, e := range kind.List(old, "endpoints") {
		endpoint, _ := e.(map[string]any)
		nodes[kind.Text(endpoint, "deprecatedTopology", corev1.LabelHostname)] = true
	}
	for _, e := range kind.List(obj, "endpoints") {
		endpoint, _ := e.(map[string]any)
		node := kind.Text(endpoint, "deprecatedTopology", corev1.LabelHostname)
		if node != "" && nodes[node] && endpoint["nodeName"] == nil && len(validation.IsDNS1123Subdomain(node)) == 0 {
			endpoint["nodeName"] = node
		}
		delete(endpoint, "deprecatedTopology")
	}
}

// warnOfEndpointSlice warns about addresses that parsers interpret differently. It skips those that
// a controller of Kubernetes writes.
func warnOfEndpointSlice(obj, old map[string]any) (warnings []string) {
	if old == nil && kind.Text(obj, "addressType") == string(discoveryv1.AddressTypeFQDN) {
		warnings = append(warnings, "spec.addressType: FQDN endpoints are deprecated")
	}
	switch kind.Text(obj, "metadata", "labels", discoveryv1.LabelManagedBy) {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return warnings
	}
	for i, e := range kind.List(obj, "endpoints") {
		endpoint, _ := e.(map[string]any)
		for j, a := range kind.Texts(endpoint, "addresses") {
			warnings = append(warnings, kind.WarnOfIP(field.NewPath("endpoints").Index(i).Child("addresses").Index(j), a)...)
		}
	}
	return warnings
}

func validateEndpointSlice(_ context.Context, c *resource.Change) field.ErrorList {
	obj, old := c.Object, c.Old
	s := kind.ValueOf[discoveryv1.EndpointSlice](obj)
	errs := kind.MetaFinalizers(obj)
	errs = append(errs, kind.Supported(s.AddressType, field.NewPath("addressType"), "FQDN", "IPv4", "IPv6")...)
	if old != nil && kind.Text(old, "addressType") != string(s.AddressType) {
		var shown any // the error of a tag has no value
		if !rule.Tagged(c.Gates) {
			shown = s.AddressType
		}
		errs = append(errs, field.Invalid(field.NewPath("addressType"), shown, "field is immutable"))
	}
	errs = append(errs, validateEndpointPorts(s.Ports, field.NewPath("ports"))...)
	if old != nil && object.Equal(obj["endpoints"], old["endpoints"]) {
		return errs // it was valid before
	}
	return append(errs, validateEndpoints(c.Gates, s, field.NewPath("endpoints"))...)
}

func validateEndpoints(gates *gate.Set, s *discoveryv1.EndpointSlice, of *field.Path) (errs field.ErrorList) {
	if n := len(s.Endpoints); n > maxEndpoints {
		return field.ErrorList{field.TooMany(of, n, maxEndpoints)}
	}
	for i, e := range s.Endpoints {
		at := of.Index(i)
		errs = append(errs, validateAddresses(gates, e.Addresses, s.AddressType, at.Child("addresses"))...)
		if e.NodeName != nil {
			errs = append(errs, kind.Invalids(at.Child("nodeName"), *e.NodeName, validation.IsDNS1123Subdomain(*e.NodeName))...)
		}
		if e.Hostname != nil {
			errs = append(errs, kind.Invalids(at.Child("hostname"), *e.Hostname, validation.IsDNS1123Label(*e.Hostname))...)
		}
		if e.Hints != nil {
			errs = append(errs, validateHints(e.Hints, at.Child("hints"))...)
		}
	}
	return errs
}

func validateHints(hints *discoveryv1.EndpointHints, of *field.Path) (errs field.ErrorList) {
	var zones, nodes []string
	for _, z := range hints.ForZones {
		zones = append(zones, z.Name)
	}
	for _, n := range hints.ForNodes {
		nodes = append(nodes, n.Name)
	}
	for _, h := range []struct {
		at    *field.Path
		names []string
		judge func(string) []string
	}{
		{of.Child("forZones"), zones, validation.IsValidLabelValue},
		{of.Child("forNodes"), nodes, validation.IsDNS1123Subdomain},
	} {
		if n := len(h.names); n > maxEndpointHints {
			return append(errs, field.TooMany(h.at, n, maxEndpointHints))
		}
		for i, name := range h.names {
			at := h.at.Index(i).Child("name")
			if slices.Contains(h.names[:i], name) {
				errs = append(errs, field.Duplicate(at, name))
			}
			errs = append(errs, kind.Invalids(at, name, h.judge(name))...)
		}
	}
	return errs
}

// validateAddresses allows loopback addresses, which Kubernetes does not: an endpoint may well run
// on this machine.
func validateAddresses(gates *gate.Set, addresses []string, typ discoveryv1.AddressType, of *field.Path) (errs field.ErrorList) {
	switch n := len(addresses); {
	case n == 0:
		errs = append(errs, field.Required(of, rule.Untagged(gates, "must contain at least 1 address")))
	case n > maxEndpointAddresses:
		errs = append(errs, field.TooMany(of, n, maxEndpointAddresses))
	}
	for i, a := range addresses {
		var wrong field.ErrorList
		at, six := of.Index(i), typ == discoveryv1.AddressTypeIPv6
		switch typ {
		case discoveryv1.AddressTypeFQDN:
			errs = append(errs, validation.IsFullyQualifiedDomainName(at, a)...)
			continue
		case discoveryv1.AddressTypeIPv4:
			wrong = kind.ValidateLegacyIP(gates, at, a, nil)
		case discoveryv1.AddressTypeIPv6:
			wrong = validation.IsValidIP(at, a)
		default:
			continue
		}
		if errs = append(errs, wrong...); len(wrong) > 0 {
			continue
		}
		if kind.IsIPv6(a) != six {
			errs = append(errs, field.Invalid(of, a, fmt.Sprintf("must be an %s address", typ)))
		}
		errs = append(errs, kind.ValidateReachable(at, a)...)
	}
	return errs
}

func validateEndpointPorts(ports []discoveryv1.EndpointPort, of *field.Path) (errs field.ErrorList) {
	if len(ports) > maxEndpointPorts {
		return field.ErrorList{field.TooMany(of, len(ports), maxEndpointPorts)}
	}
	names := map[string]bool{}
	for i, port := range ports {
		at := of.Index(i)
		name := ""
		if port.Name != nil {
			name = *port.Name
		}
		if name != "" {
			errs = append(errs, kind.Invalids(at.Child("name"), name, validation.IsDNS1123Label(name))...)
		}
		if names[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names[name] = true
		// An empty protocol is present, as the Go field is a pointer.
		protocols := []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
		if p := port.Protocol; p != nil && !slices.Contains(protocols, *p) {
			errs = append(errs, field.NotSupported(at.Child("protocol"), *p, protocols))
		}
		if port.AppProtocol != nil {
			errs = append(errs, kind.Invalids(at.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol))...)
		}
	}
	return errs
}
