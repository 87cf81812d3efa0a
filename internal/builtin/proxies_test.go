package builtin

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/memkv"
)

// behind listens at every address, and responds with the address and the request. Addresses in 10.9
// do not respond.
func behind(_ context.Context, _, address string) (net.Conn, error) {
	if strings.HasPrefix(address, "10.9.") {
		return nil, fmt.Errorf("%s does not answer", address)
	}
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		asked, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil {
			return
		}
		body := fmt.Sprint(address, " ", asked.Method, " ", asked.URL.RequestURI())
		fmt.Fprintf(theirs, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	}()
	return ours, nil
}

// Proxies of pods and services resolve the name in the path: a scheme, a name and a port.
func TestProxies(t *testing.T) {
	kubelets, err := kubelet.New(kubelet.Options{Dial: behind})
	if err != nil {
		t.Fatal(err)
	}
	c := newClusterWith(t, memkv.New(memkv.Options{}), Dependencies{Kubelets: kubelets, Network: proxy.Transport(behind)})
	at := func(ip string) string { return fmt.Sprintf(`status: {phase: Running, podIPs: [{ip: %s}]}`, ip) }
	const spec = "\nspec: {nodeName: n1, containers: [{name: c, image: i}, {name: d, image: i, ports: [{containerPort: 8080}]}]}\n"
	for name, ip := range map[string]string{"a": "10.1.0.1", "b": "10.1.0.2", "local": "127.0.0.1", "silent": "10.9.0.1", "six": `"fd00::1"`} {
		c.create("", "pods", "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+"}"+spec+at(ip))
	}
	for _, name := range []string{"s", "silent", "local", "empty"} {
		c.create("", "services", "{apiVersion: v1, kind: Service, metadata: {name: "+name+"}, spec: {type: ClusterIP, sessionAffinity: None, clusterIP: None, ports: [{name: web, port: 80, targetPort: 80, protocol: TCP}]}}")
	}
	slice := func(of, endpoints string) {
		c.create("discovery.k8s.io", "endpointslices", fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: web, port: 8443, protocol: TCP}]
endpoints: [%s]`, of, of, endpoints))
	}
	slice("s", `{addresses: [10.1.0.1], targetRef: {kind: Pod, namespace: default, name: a}},
		{addresses: [10.1.0.2], targetRef: {kind: Pod, namespace: default, name: b}, conditions: {ready: false}},
		{addresses: [10.1.0.3], targetRef: {kind: Pod, namespace: default, name: b}},
		{addresses: [10.1.0.4]}, {addresses: [10.1.0.2], targetRef: {kind: Pod, namespace: other, name: b}}`)
	slice("silent", `{addresses: [10.9.0.1], targetRef: {kind: Pod, namespace: default, name: silent}}`)
	slice("local", `{addresses: [127.0.0.1], targetRef: {kind: Pod, namespace: default, name: local}}`)
	for _, tt := range []struct{ plural, name, below, want string }{
		{"pods", "a", "/x", "10.1.0.1:8080 GET /x"},
		{"pods", "a:9090", "/", "10.1.0.1:9090 GET /"},
		{"pods", "http:six:1", "/x", "[fd00::1]:1 GET /x"},
		{"pods", "local", "/", "address not allowed"},
		{"pods", "a:b:c:d", "/", `invalid pod request "a:b:c:d"`},
		{"pods", "none", "/", `pods "none" not found`},
		{"pods", "silent", "/", "error trying to reach service: 10.9.0.1:8080 does not answer"},
		{"services", "s:web", "/x?y=z", "10.1.0.1:8443 GET /x?y=z"},
		{"services", "s:80", "/x", "10.1.0.1:8443 GET /x"},
		{"services", "http:s:80", "/x", "10.1.0.1:8443 GET /x"},
		{"services", "s:81", "/x", `no service port 81 found for service "s"`},
		{"services", "s", "/x", `no endpoints available for service "s"`},
		{"services", "none:80", "/x", `services "none" not found`},
		{"services", "local:web", "/", `no endpoints available for service "local"`},
		{"services", "empty:web", "/", `no endpoints available for service "empty"`},
		{"services", "silent:web", "/", "error trying to reach service: 10.9.0.1:8443 does not answer"},
		{"services", "a:b:c:d", "/", `invalid service request "a:b:c:d"`},
	} {
		if got := c.visit(tt.plural, tt.name, tt.below); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.plural, tt.name, got, tt.want)
		}
	}
}

// visit returns the response below a proxy, or the error.
func (c *cluster) visit(plural, name, below string) string {
	r := httptest.NewRequestWithContext(c.Context(), "GET", "/proxy"+below, nil)
	path, _, _ := strings.Cut(below, "?")
	to, err := c.registry.Connect(c.Context(), c.target("", plural, name, "proxy"), resource.Connection{Method: "GET", Path: strings.TrimSuffix(path, "/")}, nil)
	if err != nil {
		return err.Error()
	}
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	return strings.ReplaceAll(w.Body.String(), `\"`, `"`)
}
