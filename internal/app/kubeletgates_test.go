package app

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// WebSockets of containers reach a kubelet as SPDY, unless it declares that it knows them. With the gates
// off, the server forwards each WebSocket as it is.
func TestTranslatedTalks(t *testing.T) {
	const direct, translated = "GET", "POST"
	const command, forward = "v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io"
	k := startKubelet(t)
	for _, tt := range []struct {
		off                []gate.Name
		exec, attach, port string    // for a kubelet that declares nothing
		declared           [3]string // the same for one that declares ExtendWebSocketsToKubelet
		counted            string
	}{
		{nil, translated, translated, translated, [3]string{direct, direct, direct}, "proxied_to_kubelet"},
		{[]gate.Name{gate.TranslateStreamCloseWebsocketRequests}, direct, direct, translated, [3]string{direct, direct, direct}, ""},
		{[]gate.Name{gate.PortForwardWebsockets}, translated, translated, direct, [3]string{direct, direct, direct}, "proxied_to_kubelet"},
		{[]gate.Name{gate.ExtendWebSocketsToKubelet}, translated, translated, translated, [3]string{translated, translated, translated}, "translated_at_apiserver"},
	} {
		t.Run(fmt.Sprint(tt.off), func(t *testing.T) {
			off := map[gate.Name]bool{}
			for _, name := range tt.off {
				off[name] = false
			}
			a, c := kubeletServer(t, k, Options{Gates: gate.With(off)})
			for path, body := range map[string]string{
				"/api/v1/nodes": `{"apiVersion":"v1","kind":"Node","metadata":{"name":"new"},"status":{"declaredFeatures":["ExtendWebSocketsToKubelet"],` +
					`"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":` + k.port + `}}}}`,
				"/api/v1/namespaces/default/pods": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new"},"spec":{"nodeName":"new","containers":[{"name":"c","image":"i"}]}}`,
			} {
				if code, said := ask(t, c, "POST", a.URL()+path, "", body); code != http.StatusCreated {
					t.Fatal(code, said)
				}
			}
			for _, request := range []struct{ pod, path, protocol, method string }{
				{"a", "exec?command=ls", command, tt.exec}, {"a", "attach", command, tt.attach}, {"a", "portforward", forward, tt.port},
				{"new", "exec?command=ls", command, tt.declared[0]}, {"new", "attach", command, tt.declared[1]}, {"new", "portforward", forward, tt.declared[2]},
				{"a", "exec?command=ls", "v4.channel.k8s.io", direct}, {"a", "portforward", "v4.channel.k8s.io", direct},
			} {
				openSocket(t, a, "/api/v1/namespaces/default/pods/"+request.pod+"/"+request.path, request.protocol)
				if got := <-k.asked; !strings.HasPrefix(got, request.method+" ") {
					t.Errorf("%s of %s by %s: %s, want %s", request.path, request.pod, request.protocol, got, request.method)
				}
			}
			_, metrics := ask(t, c, "GET", a.URL()+"/metrics", "", "")
			line := fmt.Sprintf(`apiserver_websocket_streaming_requests_total{proxy_type=%q,subresource="exec"}`, tt.counted)
			if found := strings.Contains(metrics, line); found != (tt.counted != "") {
				t.Errorf("%s is in the metrics: %t", line, found)
			}
		})
	}
}

// openSocket opens a WebSocket for the rest of the test.
func openSocket(t *testing.T, a *App, path, protocol string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*admin(t, a)}, NextProtos: []string{"http/1.1"}}
	conn, err := tls.Dial("tcp", a.Address().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: %s\r\n\r\n", path, protocol)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
}
