package builtin

import (
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
)

const badAddress = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"

// Errors of networking kinds are those of kube-apiserver.
func TestNetworkingValidation(t *testing.T) {
	const owner = `parentRef: {resource: services, namespace: a, name: b}`
	for _, tt := range []struct {
		plural, old, in string
		want            []string
	}{
		{"ipaddresses", "", `{` + owner + `}`, nil},
		{"ipaddresses", "", `{}`, []string{"spec.parentRef: Required value"}},
		{"ipaddresses", "", `{parentRef: {group: "-", namespace: a/b}}`, []string{
			`spec.parentRef.group: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			"spec.parentRef.resource: Required value",
			`spec.parentRef.namespace: Invalid value: "a/b": may not contain '/'`,
			"spec.parentRef.name: Required value",
		}},
		{"ipaddresses", `{` + owner + `}`, `{` + owner + `}`, nil},
		{"ipaddresses", `{` + owner + `}`, `{parentRef: {resource: services, namespace: a, name: c}}`, []string{
			`spec.parentRef: Invalid value: null: field is immutable`,
		}},

		{"servicecidrs", "", `{cidrs: [10.0.0.0/24, "fd00::/64"]}`, nil},
		{"servicecidrs", "", `{}`, []string{"spec.cidrs: Required value: at least one CIDR required"}},
		{"servicecidrs", "", `{cidrs: [a, b, c]}`, []string{`spec.cidrs: Invalid value: {"CIDRs":["a","b","c"]}: may only hold up to 2 values`}},
		{"servicecidrs", "", `{cidrs: [10.0.0.1/24]}`, []string{`spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length`}},
		{"servicecidrs", "", `{cidrs: [10.0.0.0/24, 10.0.1.0/24]}`, []string{
			`spec.cidrs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64`,
		}},
		{"servicecidrs", `{cidrs: [10.0.0.0/24]}`, `{cidrs: [10.0.0.0/24, "fd00::/64"]}`, nil},
		{"servicecidrs", `{cidrs: [10.0.0.0/24]}`, `{cidrs: [10.0.1.0/24, "fd00::/64"]}`, []string{`spec.cidrs[0]: Invalid value: "10.0.1.0/24": field is immutable`}},
		{"servicecidrs", `{cidrs: [10.0.0.0/24]}`, `{cidrs: [10.0.1.0/24]}`, []string{`spec.cidrs[0]: Invalid value: "10.0.1.0/24": field is immutable`}},
		{"servicecidrs", `{cidrs: [10.0.0.0/24, "fd00::/64"]}`, `{cidrs: [10.0.0.0/24]}`, []string{`spec.cidrs: Invalid value: ["10.0.0.0/24"]: field is immutable`}},
	} {
		d := definition(t, tt.plural)
		object := func(spec string) map[string]any {
			return read(t, `{apiVersion: networking.k8s.io/v1, kind: `+d.Kind+`, metadata: {name: 10.0.0.1}, spec: `+spec+`}`)
		}
		var old map[string]any
		if tt.old != "" {
			old, _ = write(t, d, object(tt.old), nil)
		}
		_, errs := write(t, d, object(tt.in), old)
		same(t, tt.plural+" "+tt.old+" "+tt.in, messages(errs), tt.want)
	}
	for name, want := range map[string][]string{
		"10.0.0.1": nil, "fd00::1": nil,
		"10.0.0.01": {"must not have leading 0s"}, "fd00:0::1": {`must be in canonical form ("fd00::1")`}, "a": {badAddress},
	} {
		same(t, name, definition(t, "ipaddresses").ValidateName(name, false), want)
	}
}

// The condition Ready is set through the subresource status only.
func TestServiceCIDRStatus(t *testing.T) {
	d := definition(t, "servicecidrs")
	const text = `{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: a, labels: {a: b}}, spec: {cidrs: [10.0.0.0/24]},
		status: {conditions: [{type: Ready, status: "True", reason: "", message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]}}`
	created, _ := write(t, d, read(t, text), nil)
	same(t, "status at first", created["status"], any(map[string]any{}))
	obj, old := read(t, text), read(t, text)
	old["spec"], old["metadata"], old["status"] = read(t, `{cidrs: [10.0.9.0/24]}`), read(t, `{name: a}`), nil
	d.Versions[0].Subresource("status").Revert(t.Context(), &resource.Change{Object: obj, Old: old})
	want := read(t, text)
	want["spec"], want["metadata"] = old["spec"], old["metadata"]
	same(t, "status", obj, want)
}

func TestNetworkingTables(t *testing.T) {
	for _, tt := range []struct {
		plural, in string
		want       []any
	}{
		{"ipaddresses", `spec: {parentRef: {resource: services, namespace: a, name: b}}`, []any{"services/a/b"}},
		{"ipaddresses", `spec: {parentRef: {group: g.io, resource: Gates, name: b}}`, []any{"gates.g.io/b"}},
		{"servicecidrs", `spec: {cidrs: [10.0.0.0/24, "fd00::/64"]}`, []any{"10.0.0.0/24,fd00::/64"}},
		{"endpoints", `subsets: []`, []any{"<none>"}},
		{"endpoints", `subsets: [{addresses: [{ip: 1.1.1.1}]}, {addresses: [{ip: 1.1.1.2}, {ip: "fd00::1"}], ports: [{port: 80}, {port: 81, name: a}]}]`,
			[]any{"1.1.1.1,1.1.1.2:80,[fd00::1]:80 + 2 more..."}},
	} {
		d := definition(t, tt.plural)
		same(t, tt.in, cellsOf(t, d, `{apiVersion: `+d.APIVersion("v1")+`, kind: `+d.Kind+`, metadata: {name: a}, `+tt.in+`}`), tt.want)
	}
}

func TestEndpointsValidation(t *testing.T) {
	for _, tt := range []struct {
		old, in string
		want    []string
	}{
		{"", `[{addresses: [{ip: 127.0.0.1}], ports: [{port: 80}]}]`, nil},
		{"", `[{ports: [{port: 0, name: A}, {port: 1, protocol: x}]}]`, []string{
			"subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
			`subsets[0].ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			"subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
			"subsets[0].ports[1].name: Required value",
			`subsets[0].ports[1].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"`,
		}},
		{"", `[{notReadyAddresses: [{ip: x}, {ip: 0.0.0.0, nodeName: _}]}]`, []string{
			`subsets[0].notReadyAddresses[0].ip: Invalid value: "x": ` + badAddress,
			`subsets[0].notReadyAddresses[0].ip: Invalid value: "x": must be a valid IP address`,
			`subsets[0].notReadyAddresses[1].nodeName: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`subsets[0].notReadyAddresses[1].ip: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)`,
		}},
		{`[{addresses: [{ip: x}]}]`, `[{addresses: [{ip: x}]}]`, nil},
	} {
		d := definition(t, "endpoints")
		object := func(subsets string) map[string]any {
			return read(t, `{apiVersion: v1, kind: Endpoints, metadata: {name: a}, subsets: `+subsets+`}`)
		}
		var old map[string]any
		if tt.old != "" {
			old, _ = write(t, d, object(tt.old), nil)
		}
		obj, errs := write(t, d, object(tt.in), old)
		same(t, tt.in, messages(errs), tt.want)
		if kind := d.Warn(t.Context(), &resource.Change{Object: obj}); kind != nil {
			t.Errorf("%s: warned %q", tt.in, kind)
		}
	}
}
