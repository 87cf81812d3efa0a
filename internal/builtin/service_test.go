package builtin

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// completed returns an object with its defaults.
func completed(t *testing.T, d *resource.Definition, text string) map[string]any {
	t.Helper()
	v := d.Versions[0]
	obj, _, err := v.Schema.Complete(read(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if errs := allocate(t, d, obj, nil); len(errs) > 0 {
		t.Fatal(messages(errs))
	}
	if v.Revert != nil {
		v.Revert(t.Context(), &resource.Change{Object: obj})
	}
	if d.Prepare != nil {
		d.Prepare(t.Context(), &resource.Change{Object: obj})
	}
	return obj
}

// services returns the kind Service with an Allocator for the ranges.
func services(t *testing.T, cidrs ...string) *resource.Definition {
	t.Helper()
	backend := memkv.New(memkv.Options{})
	var ranges []netip.Prefix
	for _, c := range cidrs {
		ranges = append(ranges, netip.MustParsePrefix(c))
	}
	stored, _ := json.Marshal(map[string]any{"metadata": map[string]any{"name": "kubernetes"}, "spec": map[string]any{"cidrs": cidrs}})
	if _, err := backend.Commit(t.Context(), kv.Write{Key: "/registry/servicecidrs/kubernetes", Value: stored}); err != nil {
		t.Fatal(err)
	}
	cache := watchcache.New(backend, watchcache.Options{})
	ended := make(chan error, 1)
	go func() { ended <- cache.Run(t.Context()) }()
	t.Cleanup(func() { <-ended; _ = backend.Close() })
	kinds := resource.NewSet(Definitions())
	GiveAddresses(kinds, cache, ranges, allocation.PortRange{Base: 30000, Size: 2768}, nil)
	return kinds.Lookup("", "services")
}

func service(t *testing.T, spec string) map[string]any {
	return read(t, `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: `+spec+`}`)
}

// Fields that the server sets. A dry run gets placeholders: the network address, and ports from
// 32769 on.
func TestServiceDefaults(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{ports: [{port: 80}]}`, `{ports: [{port: 80, protocol: TCP, targetPort: 80}], type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster,
			clusterIP: 10.0.0.0, clusterIPs: [10.0.0.0], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`},
		{`{clusterIP: 10.0.0.1}`, `{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster,
			ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`},
		// A service without a selector has no restriction of families.
		{`{clusterIP: None}`, `{clusterIP: None, clusterIPs: [None], type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster,
			ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack}`},
		{`{clusterIP: None, selector: {a: b}}`, `{clusterIP: None, clusterIPs: [None], selector: {a: b}, type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster,
			ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`},
		{`{clusterIP: None, ipFamilies: [IPv6], ipFamilyPolicy: PreferDualStack}`, `{clusterIP: None, clusterIPs: [None], type: ClusterIP, sessionAffinity: None,
			internalTrafficPolicy: Cluster, ipFamilies: [IPv6, IPv4], ipFamilyPolicy: PreferDualStack}`},
		{`{type: ExternalName, externalName: a.b}`, `{type: ExternalName, externalName: a.b, sessionAffinity: None}`},
		{`{externalIPs: [9.9.9.9], sessionAffinityConfig: {clientIP: {timeoutSeconds: 1}}}`, `{externalIPs: [9.9.9.9], clusterIP: 10.0.0.0, clusterIPs: [10.0.0.0], type: ClusterIP, sessionAffinity: None,
			internalTrafficPolicy: Cluster, externalTrafficPolicy: Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`},
		{`{type: LoadBalancer, ports: [{port: 80, protocol: UDP, targetPort: web}], sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {}}}`,
			`{type: LoadBalancer, clusterIP: 10.0.0.0, clusterIPs: [10.0.0.0], ports: [{port: 80, protocol: UDP, targetPort: web, nodePort: 32769}],
				sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}, allocateLoadBalancerNodePorts: true,
				externalTrafficPolicy: Cluster, internalTrafficPolicy: Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`},
	} {
		got := completed(t, services(t, "10.0.0.0/24"), `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: `+tt.in+`}`)
		same(t, tt.in, got["spec"], any(read(t, tt.want)))
	}
}

const notAnIP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"

func TestServiceValidation(t *testing.T) {
	for _, tt := range []struct {
		old, in string
		want    []string
	}{
		{"", `{ports: [{port: 80}]}`, nil},
		{"", `{clusterIP: None}`, nil},
		{"", `{}`, []string{"spec.ports: Required value"}},
		{"", `{type: ExternalName}`, []string{"spec.externalName: Required value"}},
		{"", `{type: ExternalName, externalName: a.b., clusterIP: None}`, []string{"spec.clusterIPs: Forbidden: may not be set for ExternalName services"}},
		{"", `{ports: [{port: 80}], type: Other}`, []string{`spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`}},

		// Ports.
		{"", `{ports: [{port: 80, name: a}, {port: 80, name: b, protocol: UDP}]}`, nil},
		{"", `{ports: [{port: 80, name: a}, {port: 81}]}`, []string{"spec.ports[1].name: Required value"}},
		{"", `{ports: [{port: 70000, targetPort: 1}]}`, []string{"spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive"}},
		{"", `{ports: [{port: 80, name: a}, {port: 80, name: b}]}`,
			[]string{`spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}`}},
		{"", `{ports: [{port: 80, nodePort: 30000}]}`, []string{"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"}},
		{"", `{type: NodePort, ports: [{port: 80, nodePort: 30000}]}`, nil},
		{"", `{type: NodePort, ports: [{port: 80, name: a, nodePort: 30000}, {port: 81, name: b, nodePort: 30000}]}`, []string{"spec.ports[1].nodePort: Invalid value: 30000: provided port is already allocated"}},

		// Addresses and their families.
		{"", `{ports: [{port: 80}], clusterIP: x}`, []string{`spec.clusterIPs[0]: Invalid value: "x": ` + notAnIP}},
		{"", `{ports: [{port: 80}], clusterIP: 010.0.0.1}`, []string{`spec.clusterIPs[0]: Invalid value: "010.0.0.1": must not have leading 0s`}},
		{"", `{ports: [{port: 80}], clusterIPs: [10.0.0.1]}`, []string{"spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: must be empty when `clusterIP` is not specified"}},
		{"", `{ports: [{port: 80}], clusterIP: 10.0.0.1, clusterIPs: [10.0.0.2]}`, []string{"spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match `clusterIP`"}},
		{"", `{ports: [{port: 80}], clusterIP: "fd00::1"}`, []string{`spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster`}},
		{"", `{ports: [{port: 80}], ipFamilies: [IPv6]}`, []string{`spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`}},
		{"", `{ports: [{port: 80}], ipFamilyPolicy: RequireDualStack}`,
			[]string{`spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`}},
		{"", `{ports: [{port: 80}], clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, "fd00::1"]}`, []string{
			`spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified`,
			`spec.clusterIPs[1]: Invalid value: ["10.0.0.1","fd00::1"]: IPv6 is not configured on this cluster`,
		}},
		{"", `{type: NodePort, clusterIP: None, ports: [{port: 80}]}`, []string{`spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`}},
		{"", `{ports: [{port: 80}], externalIPs: [127.0.0.1, 0.0.0.0, x]}`, []string{
			`spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)`,
			`spec.externalIPs[1]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)`,
			`spec.externalIPs[2]: Invalid value: "x": ` + notAnIP,
		}},

		// Fields of some types only.
		{"", `{ports: [{port: 80}], loadBalancerClass: a/b, allocateLoadBalancerNodePorts: true, loadBalancerSourceRanges: [10.0.0.1/8], externalTrafficPolicy: Local, healthCheckNodePort: 1}`, []string{
			"spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
			`spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length`,
			"spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'",
			"spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
			`spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services`,
			"spec.healthCheckNodePort: Invalid value: 1: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
		}},
		{"", `{ports: [{port: 80}], sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}}`,
			[]string{"spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400"}},

		// Changes.
		{`{clusterIP: 10.0.0.1, ports: [{port: 80}]}`, `{ports: [{port: 81}]}`, nil},
		{`{clusterIP: 10.0.0.1, ports: [{port: 80}]}`, `{clusterIP: 10.0.0.2, ports: [{port: 80}]}`, []string{`spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set`}},
		{`{clusterIP: 10.0.0.1, ports: [{port: 80}]}`, `{type: ExternalName, externalName: a.b, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}`, nil},
		{`{clusterIP: None, ports: [{port: 80}]}`, `{clusterIP: 10.0.0.1, ports: [{port: 80}]}`,
			[]string{`spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`}},
		{`{type: NodePort, ports: [{port: 80, nodePort: 30000}]}`, `{ports: [{port: 80, nodePort: 30000}]}`, nil},
		{`{type: NodePort, ports: [{port: 80, nodePort: 30000}]}`, `{ports: [{port: 80, nodePort: 30001}]}`, []string{"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"}},
		{`{type: LoadBalancer, loadBalancerClass: a/b, ports: [{port: 80}]}`, `{type: LoadBalancer, ports: [{port: 80}]}`, []string{"spec.loadBalancerClass: Invalid value: null: may not change once set"}},
	} {
		d := services(t, "10.0.0.0/24")
		var old map[string]any
		if tt.old != "" {
			old, _ = write(t, d, service(t, tt.old), nil)
		}
		_, errs := write(t, d, service(t, tt.in), old)
		same(t, tt.old+" "+tt.in, messages(errs), tt.want)
	}
}

// An update that omits allocations keeps them, and fields of a type are dropped with the type.
func TestServiceKeeps(t *testing.T) {
	for _, tt := range []struct{ old, in, want string }{
		{`{type: NodePort, clusterIP: 10.0.0.1, ports: [{port: 80, name: a, nodePort: 30000}, {port: 81, name: b, nodePort: 30001}]}`,
			`{type: NodePort, ports: [{port: 82, name: b}, {port: 83, name: c}]}`, `{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [30001, 32769]}`},
		{`{type: NodePort, clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30000}]}`,
			`{ports: [{port: 80, nodePort: 30000}]}`, `{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [0]}`},
		{`{type: NodePort, clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30000}]}`,
			`{type: ExternalName, externalName: a.b, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]}`, `{ports: [0]}`},
	} {
		d := services(t, "10.0.0.0/24")
		old, _ := write(t, d, service(t, tt.old), nil)
		now, errs := write(t, d, service(t, tt.in), old)
		if len(errs) > 0 {
			t.Errorf("%s: %v", tt.in, errs)
		}
		got, ports := map[string]any{}, []any{}
		for _, name := range []string{"clusterIP", "clusterIPs"} {
			kind.Put(got, name, kind.Value(now, "spec", name))
		}
		for _, p := range kind.List(now, "spec", "ports") {
			n, _ := p.(map[string]any)["nodePort"].(int64)
			ports = append(ports, n)
		}
		got["ports"] = ports
		same(t, tt.in, got, read(t, tt.want))
	}
}

// An ExternalName service has no fields for traffic.
func TestExternalServiceSettles(t *testing.T) {
	d := services(t, "10.0.0.0/24")
	obj, _ := write(t, d, service(t, `{type: ExternalName, externalName: a.b, internalTrafficPolicy: Local}`), nil)
	d.Canonicalize(obj)
	same(t, "spec", obj["spec"], any(read(t, `{type: ExternalName, externalName: a.b, sessionAffinity: None}`)))
}

func TestServiceStatus(t *testing.T) {
	d := services(t, "10.0.0.0/24")
	status := d.Versions[0].Subresource("status")
	const warned = `status.loadBalancer.ingress[0]: IPv6 address "FE80::0:1" should be in RFC 5952 canonical format ("fe80::1")`
	for _, tt := range []struct {
		spec, status string
		want, warned []string
	}{
		{`{ports: [{port: 80}]}`, `[{ip: 1.1.1.1}]`, []string{"status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"}, nil},
		{`{type: LoadBalancer, ports: [{port: 80}]}`, `[{ip: "FE80::0:1"}, {hostname: a.b}]`, nil, []string{warned}},
		{`{type: LoadBalancer, ports: [{port: 80}]}`, `[{ip: x, ipMode: Other}, {ipMode: VIP}, {hostname: 1.2.3.4}]`, []string{
			`status.loadBalancer.ingress[0].ip: Invalid value: "x": ` + notAnIP,
			`status.loadBalancer.ingress[0].ipMode: Unsupported value: "Other": supported values: "Proxy", "VIP"`,
			"status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set",
			`status.loadBalancer.ingress[2].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address`,
		}, nil},
	} {
		old, _ := write(t, d, service(t, tt.spec), nil)
		obj, _, err := d.Versions[0].Schema.Complete(read(t, `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: `+tt.spec+`, status: {loadBalancer: {ingress: `+tt.status+`}}}`))
		if err != nil {
			t.Fatal(err)
		}
		status.Revert(t.Context(), &resource.Change{Object: obj, Old: old})
		same(t, tt.status, messages(status.Validate(t.Context(), &resource.Change{Object: obj, Old: old})), tt.want)
		same(t, tt.status, status.Warn(t.Context(), &resource.Change{Object: obj, Old: old}), tt.warned)
	}
}

func TestServiceWarnings(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{`{ports: [{port: 80}], clusterIP: 10.0.0.1}`, nil},
		{`{clusterIP: None, externalIPs: [9.9.9.9], loadBalancerIP: 1.1.1.1, sessionAffinity: ClientIP}`, []string{
			"spec.loadBalancerIP is ignored for headless services",
			"spec.externalIPs is ignored for headless services",
			"spec.SessionAffinity is ignored for headless services",
		}},
		{`{ports: [{port: 80}], externalIPs: ["2001:DB8::1"], externalName: a, trafficDistribution: PreferClose}`, []string{
			`spec.externalIPs[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")`,
			"spec.externalIPs is deprecated and may no longer be implemented in some clusters",
			`spec.externalName is ignored when spec.type is not "ExternalName"`,
			`spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`,
		}},
		{`{type: ExternalName, externalName: a, externalIPs: [9.9.9.9]}`, []string{`spec.externalIPs is ignored when spec.type is "ExternalName"`}},
		{`{type: LoadBalancer, ports: [{port: 80}], loadBalancerIP: x, loadBalancerSourceRanges: ["2001:DB8::/32", " 10.0.0.0/8 "]}`,
			[]string{`spec.loadBalancerSourceRanges[0]: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")`}},
	} {
		d := services(t, "10.0.0.0/24")
		obj, errs := write(t, d, service(t, tt.in), nil)
		if len(errs) > 0 {
			t.Errorf("%s: %v", tt.in, errs)
		}
		same(t, tt.in, d.Warn(t.Context(), &resource.Change{Object: obj}), tt.want)
	}
}

// cellsOf returns the cells of an object in its Table.
func cellsOf(t *testing.T, d *resource.Definition, text string) (cells []any) {
	t.Helper()
	obj := completed(t, d, text)
	if status := read(t, text)["status"]; status != nil {
		obj["status"] = status // written since then
	}
	for _, c := range d.Versions[0].Columns() {
		if c.Name != "Age" {
			cells = append(cells, c.Cell(obj))
		}
	}
	// The cells can be encoded.
	_ = codec.NewColumns(d.Versions[0].Columns()).Cells(obj)
	return cells
}

func TestServiceTable(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []any
	}{
		{`{spec: {ports: [{port: 80}, {port: 81, nodePort: 30000, protocol: UDP}], clusterIP: 10.0.0.1, selector: {b: c, a: b}}}`,
			[]any{"ClusterIP", "10.0.0.1", "<none>", "80/TCP,81:30000/UDP", "a=b,b=c"}},
		{`{spec: {type: ExternalName, externalName: a.b}}`, []any{"ExternalName", "<none>", "a.b", "<none>", "<none>"}},
		{`{spec: {type: LoadBalancer}}`, []any{"LoadBalancer", "10.0.0.0", "<pending>", "<none>", "<none>"}},
		{`{spec: {type: LoadBalancer, externalIPs: [9.9.9.9]}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}, {hostname: h}]}}}`,
			[]any{"LoadBalancer", "10.0.0.0", "1.1.1.1,h,9.9.9.9", "<none>", "<none>"}},
	} {
		same(t, tt.in, cellsOf(t, services(t, "10.0.0.0/24"), `{apiVersion: v1, kind: Service, metadata: {name: a}, `+tt.in[1:]), tt.want)
	}
}
