package pods

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// refuse answers an upgrade of the container "refuse" with the request that arrived.
func refuse(w http.ResponseWriter, r *http.Request) {
	var headers []string
	for name, values := range r.Header {
		headers = append(headers, fmt.Sprint(name, values))
	}
	slices.Sort(headers)
	http.Error(w, fmt.Sprint(r.Method, " ", r.RequestURI, " ", headers), http.StatusForbidden)
}

// WebSockets with streams for a kubelet: both servers send the same request to it, and the same frames to the client, by each value
// of the gates.
func TestSockets(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	port := startKubelet(t)
	for name, flags := range map[string][]string{
		"on":                 nil,
		"off":                {"--feature-gates=TranslateStreamCloseWebsocketRequests=false,PortForwardWebsockets=false"},
		"not by the kubelet": {"--feature-gates=ExtendWebSocketsToKubelet=false"},
	} {
		t.Run(name, func(t *testing.T) { compareSockets(t, port, flags) })
	}
}

func compareSockets(t *testing.T, port string, flags []string) {
	fill := strings.NewReplacer("MACHINE", machine(t), "PORT", port).Replace
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: "start", Store: "memory", Dir: t.TempDir(), Theirs: flags, Ours: append([]string{controllers}, flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	prepare := []request{
		{method: "POST", path: "/api/v1/namespaces", body: "{apiVersion: v1, kind: Namespace, metadata: {name: sockets}}"},
		{method: "POST", path: "/api/v1/namespaces/sockets/serviceaccounts", body: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}"},
	}
	for pod, status := range map[string]string{"old": "", "new": "declaredFeatures: [ExtendWebSocketsToKubelet], "} {
		prepare = append(prepare,
			request{method: "POST", path: "/api/v1/nodes", body: "{apiVersion: v1, kind: Node, metadata: {name: " + pod + "}, status: {" + status + "addresses: [{type: InternalIP, address: MACHINE}], daemonEndpoints: {kubeletEndpoint: {Port: PORT}}}}"},
			request{method: "POST", path: "/api/v1/namespaces/sockets/pods", body: "{apiVersion: v1, kind: Pod, metadata: {name: " + pod + "}, spec: {nodeName: " + pod + ", containers: [{name: refuse, image: i}]}}"})
	}
	prepareBoth(t, p, prepare, fill)
	for _, pod := range []string{"old", "new"} {
		for _, tt := range []struct{ path, protocols string }{
			{"exec?command=ls&stdin=1&stdout=1&stderr=1", "v5.channel.k8s.io, v4.channel.k8s.io"},
			{"exec?command=ls&stderr=1&tty=1", "other,v5.channel.k8s.io"},
			{"exec?command=ls&stdin=1", "v5.channel.k8s.io"},
			{"exec?command=ls&stdin=1", "v4.channel.k8s.io"},
			{"exec?command=ls&stdin=1", ""},
			{"attach?stdin=1&stdout=1", "v5.channel.k8s.io"},
			{"portforward?ports=1", "SPDY/3.1+portforward.k8s.io"},
			{"portforward?ports=1", "SPDY/3.1+other.k8s.io, SPDY/3.1+portforward.k8s.io"},
			{"portforward?ports=2", "SPDY/3.1+portforward.k8s.io"},
			{"portforward?ports=2", "SPDY/3.1+portforward"},
			{"portforward?ports=2", "v4.channel.k8s.io"},
		} {
			path := "/api/v1/namespaces/sockets/pods/" + pod + "/" + tt.path
			theirs, ours := readSocket(t, p.Theirs, path, tt.protocols), readSocket(t, p.Ours, path, tt.protocols)
			if theirs != ours {
				t.Errorf("%s by %q\n\tKubernetes %s\n\tanykind    %s", path, tt.protocols, theirs, ours)
			}
			t.Log(ours)
		}
	}
	var counts [2]string
	for i, c := range []*wire.Client{p.Theirs, p.Ours} {
		a := (&side{client: c}).do(t, request{method: "GET", path: "/metrics"})
		counts[i] = strings.Join(regexp.MustCompile(`(?m)^apiserver_(stream_t|websocket_streaming).*$`).FindAllString(string(a.Body), -1), "\n")
	}
	if counts[0] != counts[1] {
		t.Errorf("metrics\n\tKubernetes %s\n\tanykind    %s", counts[0], counts[1])
	}
}

// readSocket asks for a WebSocket, and returns the response and all bytes until the server closes the connection. From forwarded
// ports it returns the first line.
func readSocket(t *testing.T, c *wire.Client, path, protocols string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", c.Host(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil { // if a server does not end it
		t.Fatal(err)
	}
	if protocols != "" {
		protocols = "Sec-WebSocket-Protocol: " + protocols + "\r\n"
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nUser-Agent: client\r\nOrigin: https://client\r\n%s\r\n", path, servers.Token, protocols)
	answers := bufio.NewReader(conn)
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprint(answer.StatusCode, " ", answer.Header["Sec-Websocket-Protocol"], answer.Header["Sec-Websocket-Accept"])
	from := io.Reader(answers)
	if answer.StatusCode != http.StatusSwitchingProtocols {
		from = answer.Body
	}
	if answer.StatusCode == http.StatusSwitchingProtocols && strings.Contains(path, "/portforward") {
		line, err := answers.ReadString('\n') // the request that arrived; the echo has no end
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return fmt.Sprintf("%s %q", out, line)
	}
	rest, err := io.ReadAll(from)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%s: %v", path, err)
	}
	return fmt.Sprintf("%s %q", out, rest)
}
