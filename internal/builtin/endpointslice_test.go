package builtin

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

func TestEndpointSlice(t *testing.T) {
	d := definition(t, "endpointslices")
	const head = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}, `
	same(t, "cells", cellsOf(t, d, head+`addressType: IPv4, endpoints: [{addresses: [1.1.1.1, 1.1.1.2]}, {addresses: [1.1.1.3, 1.1.1.4]}], ports: [{port: 80}, {name: a}, {}]}`),
		[]any{"IPv4", "80,a,", "1.1.1.1,1.1.1.2,1.1.1.3 + 1 more..."})
	same(t, "empty cells", cellsOf(t, d, head+`addressType: IPv4, endpoints: []}`), []any{"IPv4", "<unset>", "<unset>"})
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{`addressType: IPv4, endpoints: [{addresses: [127.0.0.1]}], ports: [{port: 443}]`, nil},
		{`endpoints: []`, []string{"addressType: Required value"}},
		{`addressType: IPv6, endpoints: [{addresses: ["fe80::1", "2001:DB8::1"]}, {addresses: []}]`, []string{
			`endpoints[0].addresses[0]: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)`,
			`endpoints[0].addresses[1]: Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")`,
			"endpoints[1].addresses: Required value",
		}},
		{`addressType: IPv4, endpoints: [{addresses: [010.0.0.1, "2001:db8::1", 0.0.0.0, "::ffff:1.2.3.4", x]}]`, []string{
			`endpoints[0].addresses[0]: Invalid value: "010.0.0.1": must not have leading 0s`,
			`endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address`,
			`endpoints[0].addresses[2]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)`,
			`endpoints[0].addresses[3]: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address`,
			`endpoints[0].addresses[4]: Invalid value: "x": ` + notAnIP,
		}},
		{`addressType: Other, endpoints: [{addresses: [x]}]`, []string{`addressType: Unsupported value: "Other": supported values: "FQDN", "IPv4", "IPv6"`}},
		{`addressType: IPv4, endpoints: [], ports: [{}, {name: ""}]`, []string{`ports[1].name: Duplicate value: ""`}},
		{`addressType: FQDN, endpoints: [{addresses: [a.b], nodeName: "-", hints: {forZones: [{name: a}, {name: a}], forNodes: [{}, {}, {}, {}, {}, {}, {}, {}, {}]}}]`, []string{
			`endpoints[0].nodeName: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ` +
				`and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`endpoints[0].hints.forZones[1].name: Duplicate value: "a"`,
			`endpoints[0].hints.forNodes: Too many: 9: must have at most 8 items`,
		}},
	} {
		_, errs := write(t, d, read(t, head+tt.in+`}`), nil)
		same(t, tt.in, messages(errs), tt.want)
	}
}

func TestEndpointSliceChanges(t *testing.T) {
	d := definition(t, "endpointslices")
	const head = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, generation: 1, labels: {a: b}}, `
	old, _ := write(t, d, read(t, head+`addressType: IPv4, endpoints: []}`), nil)
	same(t, "no endpoints", old["endpoints"], nil)
	_, errs := write(t, d, read(t, head+`addressType: IPv6, endpoints: []}`), old)
	same(t, "another type", messages(errs), []string{"addressType: Invalid value: null: field is immutable"})
	now, _ := write(t, d, read(t, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, generation: 1}, addressType: IPv4}`), old)
	same(t, "generation with other labels", kind.Value(now, "metadata", "generation"), int64(2))

	// topology has a deprecated field that still gives the zone of an endpoint.
	const topology = `addressType: IPv4, endpoints: [{addresses: [%], deprecatedTopology: {kubernetes.io/hostname: here}}]}`
	stored := read(t, head+strings.ReplaceAll(topology, "%", "1.1.1.1"))
	now, _ = write(t, d, read(t, head+strings.ReplaceAll(topology, "%", "1.1.1.2")), stored)
	same(t, "topology", now["endpoints"], read(t, `{l: [{addresses: [1.1.1.2], conditions: {}, nodeName: here}]}`)["l"])
	now, _ = write(t, d, stored, nil)
	same(t, "new topology", now["endpoints"], read(t, `{l: [{addresses: [1.1.1.1], conditions: {}}]}`)["l"])

	// A stored value is not validated again.
	bad := read(t, head+`addressType: IPv4, endpoints: [{addresses: [010.1.1.1], conditions: {}}]}`)
	_, errs = write(t, d, read(t, head+`addressType: IPv4, endpoints: [{addresses: [010.1.1.1]}]}`), bad)
	same(t, "unchanged endpoints", messages(errs), []string(nil))
}

func TestEndpointSliceWarnings(t *testing.T) {
	d := definition(t, "endpointslices")
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{`addressType: FQDN, endpoints: [{addresses: [a.b]}]`, []string{"spec.addressType: FQDN endpoints are deprecated"}},
		{`addressType: IPv4, endpoints: [{addresses: [010.1.1.1]}]`, []string{`endpoints[0].addresses[0]: non-standard IP address "010.1.1.1" is invalid: use "10.1.1.1"`}},
		{`metadata: {labels: {endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}}, addressType: IPv4, endpoints: [{addresses: [010.1.1.1]}]`, nil},
	} {
		same(t, tt.in, d.Warn(t.Context(), &resource.Change{Object: read(t, `{`+tt.in+`}`)}), tt.want)
	}
}
