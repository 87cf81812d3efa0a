package builtin

import (
	"testing"

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/resource"
)

// completed returns an object as it is after its defaults.
func completed(t *testing.T, d *resource.Definition, text string) map[string]any {
	t.Helper()
	obj, _, err := d.Versions[0].Schema.Complete(read(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if d.Prepare != nil {
		d.Prepare(obj, nil)
	}
	return obj
}

func TestServiceDefaults(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{ports: [{port: 80}], clusterIP: None}`,
			`{ports: [{port: 80, protocol: TCP, targetPort: 80}], clusterIP: None, clusterIPs: [None], type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster}`},
		{`{type: ExternalName, externalName: a.b}`, `{type: ExternalName, externalName: a.b, sessionAffinity: None}`},
		{`{type: LoadBalancer, ports: [{port: 80, protocol: UDP, targetPort: web}], sessionAffinity: ClientIP}`,
			`{type: LoadBalancer, ports: [{port: 80, protocol: UDP, targetPort: web}], sessionAffinity: ClientIP,
				sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}, allocateLoadBalancerNodePorts: true,
				externalTrafficPolicy: Cluster, internalTrafficPolicy: Cluster}`},
	} {
		got := completed(t, services(), `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: `+tt.in+`}`)
		same(t, tt.in, got["spec"], any(read(t, tt.want)))
	}
}

// What a service of another type had a use for goes with the type, if the client
// says the same of it as before.
func TestServiceOfAnotherType(t *testing.T) {
	const head = `{apiVersion: v1, kind: Service, metadata: {name: a}, `
	for _, tt := range []struct{ was, now, want string }{
		{`{spec: {clusterIP: None, ports: [{port: 80}]}}`, `{spec: {type: ExternalName, externalName: a.b, clusterIP: None, clusterIPs: [None], internalTrafficPolicy: Cluster}}`,
			`{spec: {type: ExternalName, externalName: a.b, sessionAffinity: None}, status: {loadBalancer: {}}}`},
		{`{spec: {clusterIP: None, ports: [{port: 80}]}}`, `{spec: {type: ExternalName, externalName: a.b, clusterIP: 1.2.3.4}}`,
			`{spec: {type: ExternalName, externalName: a.b, clusterIP: 1.2.3.4, sessionAffinity: None}, status: {loadBalancer: {}}}`},
		{`{spec: {externalIPs: [1.2.3.4]}}`, `{spec: {externalTrafficPolicy: Cluster}}`,
			`{spec: {type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster}, status: {loadBalancer: {}}}`},
		{`{spec: {externalIPs: [1.2.3.4]}}`, `{spec: {externalTrafficPolicy: Local}}`,
			`{spec: {type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, externalTrafficPolicy: Local}, status: {loadBalancer: {}}}`},
		{`{spec: {type: LoadBalancer, loadBalancerClass: a/b, externalTrafficPolicy: Local, healthCheckNodePort: 31000, ports: [{port: 80, nodePort: 30000}]},
				status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`,
			`{spec: {type: ClusterIP, loadBalancerClass: a/b, allocateLoadBalancerNodePorts: true, externalTrafficPolicy: Local, healthCheckNodePort: 31000,
				ports: [{port: 80, nodePort: 30000}]}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`,
			`{spec: {type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, ports: [{port: 80, protocol: TCP, targetPort: 80}]}, status: {loadBalancer: {}}}`},
		{`{spec: {type: NodePort, ports: [{port: 80, nodePort: 30000}]}}`, `{spec: {type: ClusterIP, externalTrafficPolicy: Cluster, ports: [{port: 80, nodePort: 30001}]}}`,
			`{spec: {type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, ports: [{port: 80, nodePort: 30001, protocol: TCP, targetPort: 80}]}, status: {loadBalancer: {}}}`},
	} {
		d := services()
		now, _, err := d.Versions[0].Schema.Complete(read(t, head+tt.now[1:]))
		if err != nil {
			t.Fatal(err)
		}
		d.Prepare(now, completed(t, d, head+tt.was[1:]))
		same(t, tt.now, now, read(t, head+tt.want[1:]))
	}
}

func TestServiceValidation(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{`{ports: [{port: 80}]}`, nil},
		{`{clusterIP: None}`, nil},
		{`{}`, []string{"spec.ports: Required value"}},
		{`{type: ExternalName}`, []string{"spec.externalName: Required value"}},
		{`{ports: [{port: 80, name: a}, {port: 80, name: b, protocol: UDP}]}`, nil},
		{`{ports: [{port: 80, name: a}, {port: 81}]}`, []string{"spec.ports[1].name: Required value"}},
		{`{ports: [{port: 70000, targetPort: 1}]}`, []string{"spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive"}},
		{`{ports: [{port: 80}], type: Other}`, []string{`spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`}},
		{`{ports: [{port: 80}], clusterIP: x}`, []string{`spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`}},
	} {
		d := services()
		obj := completed(t, d, `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: `+tt.in+`}`)
		same(t, tt.in, messages(d.Validate(obj, nil)), tt.want)
	}
}

// A Table shows of a kind what kubectl shows of it elsewhere.
func cellsOf(t *testing.T, d *resource.Definition, text string) (cells []any) {
	t.Helper()
	obj := completed(t, d, text)
	for _, c := range d.Versions[0].Columns {
		if c.Name != "Age" {
			cells = append(cells, c.Cell(obj))
		}
	}
	// They can be written.
	_ = codec.NewColumns(d.Versions[0].Columns).Cells(obj)
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
		{`{spec: {type: LoadBalancer}}`, []any{"LoadBalancer", "<none>", "<pending>", "<none>", "<none>"}},
		{`{spec: {type: LoadBalancer, externalIPs: [9.9.9.9]}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}, {hostname: h}]}}}`,
			[]any{"LoadBalancer", "<none>", "1.1.1.1,h,9.9.9.9", "<none>", "<none>"}},
	} {
		same(t, tt.in, cellsOf(t, services(), `{apiVersion: v1, kind: Service, metadata: {name: a}, `+tt.in[1:]), tt.want)
	}
}

func TestEndpointSlice(t *testing.T) {
	d := endpointSlices()
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
		{`addressType: IPv6, endpoints: [{addresses: [1.2.3.4]}, {addresses: []}]`,
			[]string{`endpoints[0].addresses: Invalid value: "1.2.3.4": must be an IPv6 address`, "endpoints[1].addresses: Required value"}},
		{`addressType: IPv4, endpoints: [], ports: [{}, {name: ""}]`, []string{`ports[1].name: Duplicate value: ""`}},
	} {
		same(t, tt.in, messages(d.Validate(completed(t, d, head+tt.in+`}`), nil)), tt.want)
	}
	old := completed(t, d, head+`addressType: IPv4, endpoints: []}`)
	now := completed(t, d, head+`addressType: IPv6, endpoints: []}`)
	same(t, "another type", messages(d.Validate(now, old)), []string{"addressType: Invalid value: null: field is immutable"})
}
