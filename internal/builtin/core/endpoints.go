package core

import (
	"context"
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// endpoints returns the kind Endpoints, for clients that do not know EndpointSlices.
func endpoints() *resource.Definition {
	return kind.New(resource.Definition{
		Plural: "endpoints", Singular: "endpoints", Kind: "Endpoints", ShortNames: []string{"ep"},
		Namespaced:    true,
		StoragePrefix: resource.BuiltInPrefix("services/endpoints"),
		Strategy: resource.Strategy{
			AllowCreateOnUpdate: true, AllowUnconditionalUpdate: true,
			ValidateName: apivalidation.NameIsDNSSubdomain,
			Validate:     validateEndpoints,
			Warn:         resource.Looking(warnOfEndpoints),
		},
		//lint:ignore SA1019 it is served all the same
	}, kind.VersionOf[*corev1.Endpoints, *corev1.EndpointsList](&resource.Version{
		Name: "v1",
		Columns: func() []view.Column {
			//lint:ignore SA1019 it is served all the same
			docs := corev1.Endpoints{}.SwaggerDoc()
			return []view.Column{
				{Name: "Endpoints", Type: "string", Description: docs["subsets"], Cell: shownEndpoints},
				kind.AgeColumn(),
			}
		},
	}).WhenDecoded(defaultEndpoints))
}

func defaultEndpoints(obj map[string]any) {
	for _, s := range kind.List(obj, "subsets") {
		subset, _ := s.(map[string]any)
		for _, p := range kind.List(subset, "ports") {
			port, _ := p.(map[string]any)
			kind.SetDefault(port, "protocol", string(corev1.ProtocolTCP))
		}
	}
}

// shownEndpoints returns the cell with the first few ready addresses.
func shownEndpoints(obj map[string]any) any {
	const most = 3
	//lint:ignore SA1019 it is served all the same
	e := kind.ValueOf[corev1.Endpoints](obj)
	if len(e.Subsets) == 0 {
		return "<none>"
	}
	var all []string
	for _, s := range e.Subsets {
		for _, a := range s.Addresses {
			if len(s.Ports) == 0 {
				all = append(all, a.IP)
			}
		}
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				all = append(all, net.JoinHostPort(a.IP, fmt.Sprint(p.Port)))
			}
		}
	}
	if n := len(all); n > most {
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:most], ","), n-most)
	}
	return strings.Join(all, ",")
}

// validateEndpoints allows loopback addresses, which Kubernetes does not: an endpoint may well run
// on this machine.
func validateEndpoints(_ context.Context, c *resource.Change) field.ErrorList {
	obj, old := c.Object, c.Old
	errs := kind.MetaFinalizers(obj)
	if old != nil && object.Equal(obj["subsets"], old["subsets"]) {
		return errs // they were valid before
	}
	//lint:ignore SA1019 it is served all the same
	e := kind.ValueOf[corev1.Endpoints](obj)
	for i, s := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j, a := range s.Addresses {
			errs = append(errs, validateEndpointAddress(c.Gates, &a, at.Child("addresses").Index(j))...)
		}
		for j, a := range s.NotReadyAddresses {
			errs = append(errs, validateEndpointAddress(c.Gates, &a, at.Child("notReadyAddresses").Index(j))...)
		}
		for j, p := range s.Ports {
			errs = append(errs, validateEndpointPort(&p, len(s.Ports) > 1, at.Child("ports").Index(j))...)
		}
	}
	return errs
}

func validateEndpointAddress(gates *gate.Set, a *corev1.EndpointAddress, at *field.Path) field.ErrorList {
	errs := kind.ValidateLegacyIP(gates, at.Child("ip"), a.IP, nil)
	if a.Hostname != "" {
		errs = append(errs, kind.Invalids(at.Child("hostname"), a.Hostname, validation.IsDNS1123Label(a.Hostname))...)
	}
	if a.NodeName != nil {
		errs = append(errs, kind.Invalids(at.Child("nodeName"), *a.NodeName, validation.IsDNS1123Subdomain(*a.NodeName))...)
	}
	return append(errs, kind.ValidateReachable(at.Child("ip"), a.IP)...)
}

func validateEndpointPort(p *corev1.EndpointPort, named bool, at *field.Path) (errs field.ErrorList) {
	switch {
	case p.Name != "":
		errs = append(errs, kind.Invalids(at.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
	case named:
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	errs = append(errs, kind.Invalids(at.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
	errs = append(errs, kind.Supported(string(p.Protocol), at.Child("protocol"), "SCTP", "TCP", "UDP")...)
	if p.AppProtocol != nil {
		errs = append(errs, kind.Invalids(at.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName(*p.AppProtocol))...)
	}
	return errs
}

// warnOfEndpoints warns about addresses that parsers interpret differently. It skips those that the
// controller of Kubernetes writes.
func warnOfEndpoints(obj, _ map[string]any) (warnings []string) {
	if kind.Text(obj, "metadata", "labels", "endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
		return nil
	}
	for i, s := range kind.List(obj, "subsets") {
		subset, _ := s.(map[string]any)
		for _, of := range []string{"addresses", "notReadyAddresses"} {
			for j, a := range kind.List(subset, of) {
				address, _ := a.(map[string]any)
				at := field.NewPath("subsets").Index(i).Child(of).Index(j).Child("ip")
				warnings = append(warnings, kind.WarnOfIP(at, kind.Text(address, "ip"))...)
			}
		}
	}
	return warnings
}
