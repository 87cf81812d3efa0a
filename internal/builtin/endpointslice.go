package builtin

import (
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/resource"
)

const (
	maxEndpoints         = 1000
	maxEndpointAddresses = 100
	maxEndpointPorts     = 20000
	shownEndpoints       = 3 // in a Table
)

func endpointSlices() *resource.Definition {
	docs := discoveryv1.EndpointSlice{}.SwaggerDoc()
	d := kind[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](resource.Definition{
		Group: discoveryv1.GroupName, Plural: "endpointslices", Singular: "endpointslice", Kind: "EndpointSlice",
		Namespaced: true, GroupPriority: discoveryPriority, HasGeneration: true,
		AllowUnconditionalUpdate: true,
		ValidateName:             apivalidation.NameIsDNSSubdomain,
		Prepare:                  prepareEndpointSlice,
		Validate:                 validateEndpointSlice,
	}, &resource.Version{Columns: []resource.Column{
		{
			Name: "AddressType", Type: "string", Description: docs["addressType"],
			Cell: func(obj map[string]any) any { return text(obj, "addressType") },
		},
		{Name: "Ports", Type: "string", Description: docs["ports"], Cell: endpointPorts},
		{Name: "Endpoints", Type: "string", Description: docs["endpoints"], Cell: endpointAddresses},
		ageColumn(),
	}})
	whenDecoded(d, defaultEndpointSlice)
	return d
}

func endpointPorts(obj map[string]any) any {
	var all []string
	for _, p := range list(obj, "ports") {
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
	for _, e := range list(obj, "endpoints") {
		endpoint, _ := e.(map[string]any)
		all = append(all, texts(endpoint, "addresses")...)
	}
	return some(all)
}

// some shows the first few of a list.
func some(all []string) string {
	switch n := len(all); {
	case n == 0:
		return "<unset>"
	case n > shownEndpoints:
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:shownEndpoints], ","), n-shownEndpoints)
	default:
		return strings.Join(all, ",")
	}
}

func defaultEndpointSlice(obj map[string]any) {
	for _, p := range list(obj, "ports") {
		port, _ := p.(map[string]any)
		setMissing(port, "name", "")
		setMissing(port, "protocol", string(corev1.ProtocolTCP))
	}
}

// prepareEndpointSlice makes lists that are empty what they are once Kubernetes has
// stored them.
func prepareEndpointSlice(obj, _ map[string]any) {
	for _, name := range []string{"endpoints", "ports"} {
		if len(list(obj, name)) == 0 {
			obj[name] = nil
		}
	}
}

func validateEndpointSlice(obj, old map[string]any) field.ErrorList {
	typ, at := text(obj, "addressType"), field.NewPath("addressType")
	errs := supported(typ, at, "FQDN", "IPv4", "IPv6")
	if old != nil && text(old, "addressType") != typ {
		// Kubernetes does not say which value it is that may not be.
		return append(errs, field.Invalid(at, nil, "field is immutable"))
	}
	errs = append(errs, validateEndpointPorts(list(obj, "ports"), field.NewPath("ports"))...)
	endpoints, at := list(obj, "endpoints"), field.NewPath("endpoints")
	if len(endpoints) > maxEndpoints {
		errs = append(errs, field.TooMany(at, len(endpoints), maxEndpoints))
	}
	for i, e := range endpoints {
		endpoint, _ := e.(map[string]any)
		errs = append(errs, validateAddresses(texts(endpoint, "addresses"), typ, at.Index(i).Child("addresses"))...)
	}
	return errs
}

// validateAddresses allows those of this machine, which Kubernetes does not:
// what answers here may well run here.
func validateAddresses(addresses []string, typ string, of *field.Path) (errs field.ErrorList) {
	switch n := len(addresses); {
	case n == 0:
		return field.ErrorList{field.Required(of, "")}
	case n > maxEndpointAddresses:
		return field.ErrorList{field.TooMany(of, n, maxEndpointAddresses)}
	}
	for i, a := range addresses {
		at, ip := of.Index(i), net.ParseIP(a)
		switch {
		case typ == "FQDN":
			errs = append(errs, validation.IsFullyQualifiedDomainName(at, a)...)
		case ip == nil:
			errs = append(errs, field.Invalid(at, a, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
		case typ == "IPv4" && ip.To4() == nil:
			errs = append(errs, field.Invalid(of, a, "must be an IPv4 address"))
		case typ == "IPv6" && ip.To4() != nil:
			errs = append(errs, field.Invalid(of, a, "must be an IPv6 address"))
		}
	}
	return errs
}

func validateEndpointPorts(ports []any, at *field.Path) (errs field.ErrorList) {
	if len(ports) > maxEndpointPorts {
		return field.ErrorList{field.TooMany(at, len(ports), maxEndpointPorts)}
	}
	names := map[string]bool{}
	for i, p := range ports {
		port, _ := p.(map[string]any)
		at := at.Index(i)
		name := text(port, "name")
		if name != "" {
			for _, bad := range validation.IsDNS1123Label(name) {
				errs = append(errs, field.Invalid(at.Child("name"), name, bad))
			}
		}
		if names[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names[name] = true
		// One that is empty is there, for it is a pointer in Go.
		if protocol, all := text(port, "protocol"), []string{"SCTP", "TCP", "UDP"}; !slices.Contains(all, protocol) {
			errs = append(errs, field.NotSupported(at.Child("protocol"), protocol, all))
		}
	}
	return errs
}
