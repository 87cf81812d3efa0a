package app

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/object/gate"
)

// A fakeKubelet imitates a kubelet and records its requests.
type fakeKubelet struct {
	*httptest.Server
	port  string
	asked chan string
}

func startKubelet(t *testing.T) *fakeKubelet {
	k := &fakeKubelet{asked: make(chan string, 16)}
	k.Server = httptest.NewUnstartedServer(k)
	k.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	k.StartTLS()
	t.Cleanup(k.Close)
	u, err := url.Parse(k.URL)
	if err != nil {
		t.Fatal(err)
	}
	k.port = u.Port()
	return k
}

func (k *fakeKubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := "anonymous"
	if len(r.TLS.PeerCertificates) > 0 {
		who = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	k.asked <- fmt.Sprintf("%s %s by %s", r.Method, r.URL.RequestURI(), who)
	switch {
	case strings.HasPrefix(r.URL.Path, "/containerLogs/default/refused/"):
		http.Error(w, "container is waiting to start", http.StatusBadRequest)
	case strings.HasPrefix(r.URL.Path, "/containerLogs/"):
		k.follow(w, r)
	case r.Header.Get("Upgrade") != "":
		k.talk(w, r)
	default:
		fmt.Fprintln(w, "hello from", r.URL.Path)
	}
}

// follow writes a line, and with follow waits for the end of the request.
func (k *fakeKubelet) follow(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "one")
	_ = http.NewResponseController(w).Flush()
	if r.URL.Query().Get("follow") != "" {
		<-r.Context().Done() // until the client disconnects
		k.asked <- "the client has left"
	}
}

// talk echoes its input.
func (k *fakeKubelet) talk(w http.ResponseWriter, r *http.Request) {
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	_ = both.Flush()
	_, _ = io.Copy(conn, both)
}

// kubeletServer starts an App with nodes that have kubelets, and pods on them.
func kubeletServer(t *testing.T, k *fakeKubelet, o Options) (*App, *http.Client) {
	a := start(t, o)
	t.Cleanup(func() { stop(t, a) })
	c := client(t, a, admin(t, a))
	create := func(path, body string) {
		t.Helper()
		if code, said := ask(t, c, "POST", a.URL()+path, "", body); code != http.StatusCreated {
			t.Fatalf("%d %s", code, said)
		}
	}
	for name, status := range map[string]string{
		"node":   `{"addresses":[{"type":"ExternalIP","address":"192.0.2.1"},{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":` + k.port + `}}}`,
		"lonely": `{}`,
	} {
		create("/api/v1/nodes", fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":%s}`, name, status))
	}
	for name, spec := range map[string]string{
		"a":       `"nodeName":"node","containers":[{"name":"c","image":"i"}]`,
		"refused": `"nodeName":"node","containers":[{"name":"c","image":"i"}]`,
		"two":     `"nodeName":"node","containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}],"initContainers":[{"name":"first","image":"i"}]`,
		"nowhere": `"containers":[{"name":"c","image":"i"}]`,
		"lost":    `"nodeName":"gone","containers":[{"name":"c","image":"i"}]`,
		"lonely":  `"nodeName":"lonely","containers":[{"name":"c","image":"i"}]`,
	} {
		create("/api/v1/namespaces/default/pods", fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{%s}}`, name, spec))
	}
	return a, c
}

// Requests for logs, their responses, and the requests that reach the kubelet.
func TestLogs(t *testing.T) {
	k := startKubelet(t)
	testLogs(t, k, Options{}, []logTest{
		{"the only container", "a/log", 200, "one\n", "GET /containerLogs/default/a/c by anonymous"},
		{"options", "two/log?container=first&previous=true&timestamps=1&tailLines=5&limitBytes=10&sinceSeconds=3&follow=false", 200, "one\n",
			"GET /containerLogs/default/two/first?limitBytes=10&previous=true&sinceSeconds=3&tailLines=5&timestamps=true by anonymous"},
		{"which container", "two/log", 400, "a container name must be specified for pod two, choose one of: [first c d]", ""},
		{"no such container", "a/log?container=x", 400, "container x is not valid for pod a", ""},
		{"no such pod", "none/log", 404, `pods \"none\" not found`, ""},
		{"on no node", "nowhere/log", 204, "", ""},
		{"a node that is gone", "lost/log", 404, `pods \"gone\" not found`, ""},
		{"a node without addresses", "lonely/log", 500, `no preferred addresses found; known addresses: []; there is no node agent to ask: the status of Node \"lonely\" does not say where its kubelet is`, ""},
		{"options that are none", "a/log?tailLines=x", 400, `strconv.ParseInt: parsing \"x\": invalid syntax`, ""},
		{"options that are wrong", "a/log?tailLines=-1&limitBytes=0", 422, "[tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater than 0]", ""},
		{"the kubelet refuses", "refused/log", 400, `"message":"container is waiting to start\n"`, "GET /containerLogs/default/refused/c by anonymous"},
		{"a stream", "a/log?stream=Stdout", 422, "stream: Forbidden: may not be specified", ""},
	})
}

// The gate PodLogsQuerySplitStreams adds streams.
func TestLogStreams(t *testing.T) {
	k := startKubelet(t)
	testLogs(t, k, Options{Gates: gate.With(map[gate.Name]bool{gate.PodLogsQuerySplitStreams: true})}, []logTest{
		{"no stream", "a/log", 200, "one\n", "GET /containerLogs/default/a/c?stream=All by anonymous"},
		{"a stream", "a/log?stream=Stdout", 200, "one\n", "GET /containerLogs/default/a/c?stream=Stdout by anonymous"},
		{"both, and few lines", "a/log?stream=All&tailLines=1", 200, "one\n", "GET /containerLogs/default/a/c?stream=All&tailLines=1 by anonymous"},
		{"a stream, and few lines", "a/log?stream=Stderr&tailLines=1", 422,
			"`tailLines` and specific `stream` are mutually exclusive for now", ""},
		{"an unknown stream", "a/log?stream=stdout", 422,
			`stream: Unsupported value: \"stdout\": supported values: \"All\", \"Stderr\", \"Stdout\"`, ""},
	})
}

// A logTest is a request for a log, its response, and the request that reaches the kubelet.
type logTest struct {
	name  string
	path  string
	code  int
	body  string
	asked string
}

func testLogs(t *testing.T, k *fakeKubelet, o Options, tests []logTest) {
	a, c := kubeletServer(t, k, o)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, body := ask(t, c, "GET", a.URL()+"/api/v1/namespaces/default/pods/"+tt.path, "", "")
			if code != tt.code || !strings.Contains(body, tt.body) {
				t.Errorf("%d %s", code, body)
			}
			k.was(t, tt.asked)
		})
	}
}

// was checks the last request to the kubelet.
func (k *fakeKubelet) was(t *testing.T, want string) {
	t.Helper()
	got := ""
	if want != "" {
		got = <-k.asked
	} else if len(k.asked) > 0 {
		got = <-k.asked
	}
	if got != want {
		t.Errorf("the kubelet was asked %q, want %q", got, want)
	}
}

// A followed log is streamed line by line, and the kubelet sees when the client disconnects.
func TestFollowedLog(t *testing.T) {
	k := startKubelet(t)
	a, c := kubeletServer(t, k, Options{})
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", a.URL()+"/api/v1/namespaces/default/pods/a/log?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if line, err := bufio.NewReader(answer.Body).ReadString('\n'); line != "one\n" || err != nil || answer.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("got %q, %v, %v", line, err, answer.Header)
	}
	k.was(t, "GET /containerLogs/default/a/c?follow=true by anonymous")
	leave()
	k.was(t, "the client has left")
}

// Over a WebSocket, a followed log is an empty message and then one for each part. The kubelet sees when the client disconnects.
func TestFollowedLogBySocket(t *testing.T) {
	for protocol, want := range map[string]string{"": "one\n", "binary.k8s.io": "one\n", "base64.binary.k8s.io": "b25lCg=="} {
		k := startKubelet(t)
		a, _ := kubeletServer(t, k, Options{})
		config, err := websocket.NewConfig(strings.Replace(a.URL(), "https", "wss", 1)+"/api/v1/namespaces/default/pods/a/log?follow=true", "https://client")
		if err != nil {
			t.Fatal(err)
		}
		if protocol != "" {
			config.Protocol = []string{"other", protocol}
		}
		config.TlsConfig = &tls.Config{Certificates: []tls.Certificate{*admin(t, a)}, InsecureSkipVerify: true}
		conn, err := config.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"", want} {
			var got string
			if err := websocket.Message.Receive(conn, &got); err != nil || got != want {
				t.Errorf("%q: %q %v, want %q", protocol, got, err, want)
			}
		}
		k.was(t, "GET /containerLogs/default/a/c?follow=true by anonymous")
		conn.Close()
		k.was(t, "the client has left")
	}
}

// The server sends its client certificate to kubelets. With a configured CA it accepts only serving
// certificates of that CA.
func TestCertificatesOfKubelets(t *testing.T) {
	k := startKubelet(t)
	dir := t.TempDir()
	of := authority(t)
	pair, err := of.Client("kube-apiserver-kubelet-client")
	if err != nil {
		t.Fatal(err)
	}
	o := kubelet.Options{CertFile: write(t, filepath.Join(dir, "client.pem"), pair.CertPEM()), KeyFile: write(t, filepath.Join(dir, "client.key"), pair.KeyPEM())}
	theirs := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate().Raw})
	for _, tt := range []struct {
		name  string
		ca    []byte
		query string
		code  int
		asked string
	}{
		{"known", theirs, "", 200, "GET /containerLogs/default/a/c by kube-apiserver-kubelet-client"},
		{"unknown", of.CA(), "", 500, ""},
		{"unknown, and the client does not mind", of.CA(), "?insecureSkipTLSVerifyBackend=true", 200, "GET /containerLogs/default/a/c by kube-apiserver-kubelet-client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o.CAFile = write(t, filepath.Join(t.TempDir(), "ca.pem"), tt.ca)
			a, c := kubeletServer(t, k, Options{Kubelet: o})
			code, body := ask(t, c, "GET", a.URL()+"/api/v1/namespaces/default/pods/a/log"+tt.query, "", "")
			if code != tt.code {
				t.Errorf("%d %s", code, body)
			}
			k.was(t, tt.asked)
		})
	}
	for _, broken := range []kubelet.Options{{CertFile: "none.pem", KeyFile: "none.key"}, {CAFile: "none.pem"}, {CAFile: o.KeyFile}} {
		if a, err := Start(t.Context(), Options{Kubelet: broken}); err == nil {
			stop(t, a)
			t.Errorf("starts with %+v", broken)
		}
	}
}

// Upgraded connections between clients and kubelets work with each protocol.
func TestTalkToContainers(t *testing.T) {
	k := startKubelet(t)
	a, _ := kubeletServer(t, k, Options{})
	for _, tt := range []struct {
		method, path, protocol, asked string
	}{
		{"POST", "a/exec?command=ls&command=-l&stdout=true&stdin=true", "SPDY/3.1", "POST /exec/default/a/c?command=ls&command=-l&input=1&output=1 by anonymous"},
		{"GET", "two/exec?container=d&command=sh&tty=true&stderr=1", "websocket", "GET /exec/default/two/d?command=sh&error=1&tty=1 by anonymous"},
		{"POST", "a/attach?stdin=true", "SPDY/3.1", "POST /attach/default/a/c?input=1 by anonymous"},
		{"GET", "a/portforward?ports=80&ports=81", "websocket", "GET /portForward/default/a?port=80%2C81 by anonymous"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			conn := upgrade(t, a, tt.method, "/api/v1/namespaces/default/pods/"+tt.path, tt.protocol)
			k.was(t, tt.asked)
			for _, word := range []string{"ping", "pong"} {
				fmt.Fprintln(conn, word)
				if line, err := conn.answers.ReadString('\n'); line != word+"\n" || err != nil {
					t.Fatalf("got %q, %v", line, err)
				}
			}
		})
	}
}

// A server that stops closes upgraded connections.
func TestStopEndsTalks(t *testing.T) {
	k := startKubelet(t)
	var conn conversation
	t.Run("server", func(inner *testing.T) {
		a, _ := kubeletServer(inner, k, Options{})
		conn = upgrade(t, a, "POST", "/api/v1/namespaces/default/pods/a/exec?command=sh&stdin=1", "SPDY/3.1")
		fmt.Fprintln(conn, "ping")
		if line, err := conn.answers.ReadString('\n'); line != "ping\n" || err != nil {
			inner.Fatalf("got %q, %v", line, err)
		}
	}) // stops the server
	if rest, err := io.ReadAll(conn.answers); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %q, %v", rest, err)
	}
}

// Requests without an upgrade, and those without a valid target, fail with an error.
func TestStreamErrors(t *testing.T) {
	k := startKubelet(t)
	a, c := kubeletServer(t, k, Options{})
	for path, want := range map[string]string{
		"NS/pods/a/exec?command=ls":       "400 Upgrade request required",
		"NS/pods/a/exec?dryRun=All":       "400 dryRun is not supported",
		"NS/pods/a/portforward?ports=x":   "400 cannot convert to []int32: strconv.Parse",
		"NS/pods/nowhere/exec?command=ls": "400 pod nowhere does not have a host assigned",
		"NS/pods/nowhere/attach":          "400 pod nowhere does not have a host assigned",
		"NS/pods/nowhere/portforward":     "400 pod nowhere does not have a host assigned",
		"NS/pods/two/attach":              "400 a container name must be specified for pod two, choose one of: [first c d]",
		"NS/pods/two/exec?container=x":    "400 container x is not valid for pod two",
		"NS/pods/lost/exec":               `404 pods "gone" not found`,
		"NS/pods/none/exec":               `404 pods "none" not found`,
		"NS/pods/a/proxy/":                "400 address not allowed",
		"NS/pods/a:b:c:d/proxy/":          `400 invalid pod request "a:b:c:d"`,
		"NS/services/none/proxy/":         `503 no endpoints available for service "none"`,
		"NS/services/none:80/proxy/":      `404 services "none" not found`,
		"nodes/node/proxy/":               "400 address not allowed",
		"nodes/none/proxy/":               `404 nodes "none" not found`,
		"nodes/lonely/proxy/":             "500 no preferred addresses found; known addresses: []",
	} {
		to := a.URL() + "/api/v1/" + strings.Replace(path, "NS", "namespaces/default", 1)
		code, body := ask(t, c, "GET", to, "", "")
		var status struct{ Message string }
		_ = json.Unmarshal([]byte(body), &status) // a body without JSON leaves it empty
		if got := fmt.Sprint(code, " ", status.Message); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s %s", path, got, body)
		}
	}
	k.was(t, "")
}

// A conversation is an upgraded connection.
type conversation struct {
	net.Conn
	answers *bufio.Reader
}

// upgrade requests another protocol over HTTP/1.1, as clients do.
func upgrade(t *testing.T, a *App, method, path, protocol string) conversation {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*admin(t, a)}, NextProtos: []string{"http/1.1"}}
	conn, err := tls.Dial("tcp", a.Address().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil { // if the test hangs
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", method, path, protocol)
	c := conversation{conn, bufio.NewReader(conn)}
	answer, err := http.ReadResponse(c.answers, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get("Upgrade") != protocol {
		said, _ := io.ReadAll(answer.Body)
		t.Fatalf("%s %s", answer.Status, said)
	}
	return c
}
