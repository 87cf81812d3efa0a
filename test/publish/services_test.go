package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// A step is one request for a named Service in the namespace default.
type step struct{ verb, name, body string }

// created returns a create, with which most tests begin.
func created(name, spec string) step { return step{"POST", name, spec} }

// singleStack are writes of Services with one address family. The effect of a step stays for the next
// ones. The requested addresses and ports are those that a server does not allocate while others are
// free.
var singleStack = []step{
	// Addresses.
	created("a", `{ports: [{port: 80}]}`),
	created("b", `{clusterIP: 10.0.0.5, ports: [{port: 80}]}`),
	created("c", `{clusterIP: 10.0.0.5, ports: [{port: 80}]}`),
	created("c", `{clusterIP: 10.0.1.50, ports: [{port: 80}]}`),
	created("c", `{clusterIP: 10.0.0.0, ports: [{port: 80}]}`),
	created("c", `{clusterIP: 10.0.0.255, ports: [{port: 80}]}`),
	created("c", `{clusterIP: "fd00::5", ports: [{port: 80}]}`),
	created("c", `{clusterIP: x, ports: [{port: 80}]}`),
	created("c", `{ipFamilyPolicy: RequireDualStack, ports: [{port: 80}]}`),
	created("c", `{ipFamilies: [IPv6], ports: [{port: 80}]}`),
	created("c", `{ipFamilyPolicy: PreferDualStack, ports: [{port: 80}]}`),
	created("C", `{clusterIP: 10.0.0.5, ports: [{port: 80}]}`), // two mistakes
	created("b", `{clusterIP: 10.0.0.5, ports: [{port: 80}]}`),
	created("b", `{ports: [{port: 80}]}`),
	{"PUT", "a", `{ports: [{port: 81}]}`},
	{"PUT", "a", `{clusterIP: 10.0.0.6, ports: [{port: 81}]}`},
	{"PATCH", "c", `{ipFamilyPolicy: RequireDualStack}`},
	{"DELETE", "b", ""},
	created("d", `{clusterIP: 10.0.0.5, ports: [{port: 80}]}`),
	created("headless", `{clusterIP: None, selector: {a: b}, ports: [{port: 80}]}`),
	created("free", `{clusterIP: None}`),
	{"PATCH", "headless", `{clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9]}`},
	{"PATCH", "a", `{clusterIP: None, clusterIPs: [None]}`},
	// Types.
	{"PATCH", "a", `{type: ExternalName, externalName: a.b}`},
	{"PATCH", "a", `{type: ClusterIP}`},
	{"PATCH", "a", `{type: NodePort}`},
	{"PATCH", "a", `{type: LoadBalancer, externalTrafficPolicy: Local}`},
	{"PATCH", "a", `{externalTrafficPolicy: Cluster}`},
	{"PATCH", "a", `{type: ClusterIP}`},
	{"PATCH", "headless", `{type: ExternalName, externalName: a.b}`},
	{"PATCH", "headless", `{type: NodePort}`},
	created("external", `{type: ExternalName, externalName: a.b, ports: [{port: 80, nodePort: 30001}]}`),
	{"PATCH", "external", `{type: NodePort}`},
	// Ports.
	created("n", `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
	created("m", `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
	created("m", `{type: NodePort, ports: [{port: 80, nodePort: 80}]}`),
	created("m", `{type: NodePort, ports: [{port: 53, name: a, protocol: UDP}, {port: 53, name: b, nodePort: 30053}]}`),
	created("o", `{type: NodePort, ports: [{port: 53, name: a, nodePort: 30054, protocol: UDP}, {port: 54, name: b, nodePort: 30054}]}`),
	created("o", `{type: NodePort, ports: [{port: 53, name: a, nodePort: 30054}, {port: 53, protocol: UDP, name: b, nodePort: 30055}]}`),
	{"PUT", "n", `{type: NodePort, ports: [{port: 80}]}`},
	{"PUT", "n", `{type: NodePort, ports: [{port: 80, name: a}, {port: 81, name: b, nodePort: 30080}]}`},
	{"PUT", "n", `{type: NodePort, ports: [{port: 81, name: b, nodePort: 30053}]}`},
	{"PUT", "n", `{type: NodePort, ports: [{port: 81, name: b, nodePort: 40000}]}`},
	{"PUT", "n", `{type: NodePort, ports: [{port: 80, name: a, nodePort: 30070}, {port: 81, name: b, nodePort: 30070}]}`},
	{"PUT", "n", `{type: ClusterIP, ports: [{port: 81, name: b, nodePort: 30070}]}`},
	{"PUT", "n", `{type: ClusterIP, ports: [{port: 81, name: b}]}`},
	created("p", `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
	created("l", `{type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]}`),
	{"PATCH", "l", `{allocateLoadBalancerNodePorts: true}`},
	{"PATCH", "l", `{allocateLoadBalancerNodePorts: false}`},
	created("h", `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30060, ports: [{port: 80}]}`),
	created("i", `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30060, ports: [{port: 80}]}`),
	created("i", `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 100, ports: [{port: 80}]}`),
	{"PATCH", "h", `{healthCheckNodePort: 30061}`},
	{"PATCH", "h", `{type: ClusterIP}`},
	created("i", `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30060, ports: [{port: 80}]}`),
	// Dry runs.
	{"DRYRUN", "dry", `{type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80, name: a}, {port: 81, name: b}]}`},
	{"DRYRUN", "dry", `{clusterIP: 10.0.0.5, ports: [{port: 80}]}`},
	{"DRYRUN", "dry", `{clusterIP: 10.0.1.50, ports: [{port: 80}]}`},
	{"DRYRUN", "dry", `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`},
	{"DRYRUN", "dry", `{type: NodePort, ports: [{port: 80, nodePort: 80}]}`},
}

// dualStack are writes with two address families.
var dualStack = []step{
	created("a", `{ports: [{port: 80}]}`),
	created("b", `{ipFamilyPolicy: PreferDualStack, ports: [{port: 80}]}`),
	created("c", `{ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6], ports: [{port: 80}]}`),
	created("d", `{ipFamilies: [IPv6], ports: [{port: 80}]}`),
	created("e", `{clusterIP: "fd00::9", ports: [{port: 80}]}`),
	created("f", `{ipFamilyPolicy: RequireDualStack, clusterIP: 10.0.0.5, clusterIPs: [10.0.0.5, "fd00::6"], ports: [{port: 80}]}`),
	created("g", `{ipFamilyPolicy: RequireDualStack, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7, "fd00::6"], ports: [{port: 80}]}`),
	created("g", `{clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7, "fd00::7"], ports: [{port: 80}]}`),
	created("g", `{ipFamilyPolicy: RequireDualStack, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7, 10.0.0.8], ports: [{port: 80}]}`),
	created("g", `{ipFamilyPolicy: RequireDualStack, clusterIP: "fd00::7", ports: [{port: 80}]}`),
	{"PATCH", "a", `{ipFamilyPolicy: RequireDualStack}`},
	{"PATCH", "a", `{clusterIPs: [10.0.0.1]}`},
	{"PATCH", "a", `{ipFamilyPolicy: SingleStack}`},
	{"PATCH", "a", `{ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv4, IPv6]}`},
	{"PATCH", "f", `{ipFamilies: [IPv4]}`},
	{"PATCH", "f", `{ipFamilyPolicy: SingleStack, ipFamilies: [IPv4]}`},
	created("h", `{clusterIP: "fd00::6", ports: [{port: 80}]}`),
	{"PATCH", "b", `{type: ExternalName, externalName: a.b}`},
	{"PATCH", "b", `{type: NodePort, ipFamilyPolicy: PreferDualStack}`},
	created("none", `{clusterIP: None, selector: {a: b}, ipFamilyPolicy: PreferDualStack}`),
	{"PATCH", "none", `{ipFamilyPolicy: SingleStack}`},
	{"DRYRUN", "dry", `{ipFamilyPolicy: RequireDualStack, ports: [{port: 80}]}`},
}

// Services get the allocations and the errors of a kube-apiserver.
func TestServices(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	for _, tt := range []struct {
		name, cidrs string
		steps       []step
	}{{"single", "10.0.0.0/24", singleStack}, {"dual", "10.0.0.0/24,fd00::/112", dualStack}} {
		t.Run(tt.name, func(t *testing.T) {
			flag := "--service-cluster-ip-range=" + tt.cidrs
			theirs, ours := theirs(t, flag), oursWith(t, flag)
			for i, s := range tt.steps {
				at := fmt.Sprintf("%d: %s %s %s", i, s.verb, s.name, s.body)
				same(t, at, s.send(t, theirs), s.send(t, ours))
			}
			const first = "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1"
			same(t, first, comparable(theirs.get(t, first, "").tree()), comparable(ours.get(t, first, "").tree()))
			given(t, ours)
		})
	}
}

// oursWith starts our server with flags.
func oursWith(t *testing.T, flags ...string) *server {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	s, err := process.Start(context.WithoutCancel(t.Context()), anykind, t.TempDir(), "", append(flags, "--in-memory")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return open(t, s.Kubeconfig)
}

// send returns the response of a server, without values that differ between servers.
func (s step) send(t *testing.T, to *server) any {
	t.Helper()
	const all = "/api/v1/namespaces/default/services"
	object := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": s.name}}
	var spec any
	if err := yaml.Unmarshal([]byte(s.body), &spec); err != nil {
		t.Fatal(err)
	}
	object["spec"] = spec
	method, path, media := s.verb, all+"/"+s.name, "application/json"
	var body any = object
	switch s.verb {
	case "POST":
		path = all
	case "DRYRUN":
		method, path = "POST", all+"?dryRun=All"
	case "PATCH":
		media, body = "application/merge-patch+json", map[string]any{"spec": spec}
	case "DELETE":
		body = nil
	}
	data, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(t.Context(), method, to.URL+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", media)
	response, err := to.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(got, &tree); err != nil {
		t.Fatalf("%s: %s", response.Status, got)
	}
	return chosen(comparable(tree), "")
}

// comparable removes values that differ between objects.
func comparable(tree any) any {
	object, _ := tree.(map[string]any)
	if m, ok := object["metadata"].(map[string]any); ok {
		for _, f := range []string{"uid", "creationTimestamp", "resourceVersion", "managedFields"} {
			delete(m, f)
		}
	}
	return tree
}

// chosen replaces values that a server may choose freely: the addresses and ports that no step
// requests.
func chosen(tree any, field string) any {
	switch v := tree.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = chosen(value, name)
		}
	case []any:
		for i, value := range v {
			v[i] = chosen(value, field)
		}
	case string:
		if (field == "clusterIP" || field == "clusterIPs") && !asked(v) && v != "None" {
			return "an address, IPv6: " + fmt.Sprint(strings.Contains(v, ":"))
		}
	case float64:
		if (field == "nodePort" || field == "healthCheckNodePort") && !asked(fmt.Sprint(v)) && v != 0 {
			return "a port"
		}
	}
	return tree
}

// asked reports whether a step requests an address or a port.
func asked(value string) bool {
	return slices.ContainsFunc(append(slices.Clone(singleStack), dualStack...), func(s step) bool {
		return slices.Contains(strings.FieldsFunc(s.body, func(r rune) bool { return strings.ContainsRune(` ,{}[]"`, r) }), value)
	})
}

// given fails unless there is an IPAddress for each address of a Service, and no other. In Kubernetes,
// one may be missing for a while, or left over.
func given(t *testing.T, s *server) {
	t.Helper()
	var have, want []string
	items := func(path string) []any {
		list, _ := s.get(t, path, "").tree().(map[string]any)["items"].([]any)
		return list
	}
	at := func(tree any, path ...string) any {
		for _, name := range path {
			object, _ := tree.(map[string]any)
			tree = object[name]
		}
		return tree
	}
	for _, a := range items("/apis/networking.k8s.io/v1/ipaddresses") {
		have = append(have, fmt.Sprint(at(a, "metadata", "name"), " ", at(a, "spec", "parentRef", "name")))
	}
	for _, service := range items("/api/v1/services") {
		ips, _ := at(service, "spec", "clusterIPs").([]any)
		for _, ip := range ips {
			if ip != "None" {
				want = append(want, fmt.Sprint(ip, " ", at(service, "metadata", "name")))
			}
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("there are IPAddresses\n%q, and addresses of Services\n%q", have, want)
	}
}
