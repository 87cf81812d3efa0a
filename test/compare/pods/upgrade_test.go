package pods

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// talk upgrades a connection, sends the request that it got, and then echoes.
func talk(w http.ResponseWriter, r *http.Request) {
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	var headers []string
	for name, values := range r.Header {
		headers = append(headers, fmt.Sprint(name, values))
	}
	slices.Sort(headers)
	fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	fmt.Fprintln(both, r.Method, r.RequestURI, headers)
	_ = both.Flush()
	_, _ = io.Copy(conn, both)
}

// Upgraded connections to a kubelet, a pod and a node: both servers forward the same request, and then
// pass data in both directions.
func TestUpgrades(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	known := []string{"MACHINE", machine(t), "PORT", startKubelet(t), "NS", "upgrades"}
	fill := strings.NewReplacer(known...).Replace
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: "start", Store: "memory", Dir: t.TempDir(), Ours: []string{controllers},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	prepare := []request{
		{method: "POST", path: "/api/v1/namespaces", body: "{apiVersion: v1, kind: Namespace, metadata: {name: NS}}"},
		{method: "POST", path: "/api/v1/namespaces/NS/serviceaccounts", body: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}"},
		{method: "POST", path: "/api/v1/nodes", body: "{apiVersion: v1, kind: Node, metadata: {name: NS}, status: {addresses: [{type: InternalIP, address: MACHINE}], daemonEndpoints: {kubeletEndpoint: {Port: PORT}}}}"},
		{method: "POST", path: "/api/v1/namespaces/NS/pods", body: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: NS, containers: [{name: c, image: i}]}}"},
		{method: "PATCH", path: "/api/v1/namespaces/NS/pods/a/status", body: "status: {podIP: MACHINE, podIPs: [{ip: MACHINE}]}"},
	}
	prepareBoth(t, p, prepare, fill)
	for _, tt := range []struct{ method, path, protocol string }{
		{"POST", "/api/v1/namespaces/NS/pods/a/exec?command=ls&command=-l&stdin=true&stdout=1&stderr=false&tty=true", "SPDY/3.1"},
		{"GET", "/api/v1/namespaces/NS/pods/a/exec?command=ls&container=c", "websocket"},
		{"POST", "/api/v1/namespaces/NS/pods/a/attach?stdin=true", "SPDY/3.1"},
		{"POST", "/api/v1/namespaces/NS/pods/a/portforward", "SPDY/3.1"},
		{"GET", "/api/v1/namespaces/NS/pods/a/portforward?ports=80&ports=81", "websocket"},
		{"GET", "/api/v1/namespaces/NS/pods/https:a:PORT/proxy/x/y", "websocket"},
		{"POST", "/api/v1/nodes/NS/proxy/exec/ns/a/c", "SPDY/3.1"},
	} {
		theirs, ours := converse(t, p.Theirs, tt.method, fill(tt.path), tt.protocol), converse(t, p.Ours, tt.method, fill(tt.path), tt.protocol)
		if theirs != ours {
			t.Errorf("%s %s\n\tKubernetes %s\n\tanykind    %s", tt.method, tt.path, theirs, ours)
		}
		t.Log(ours)
	}
	for _, protocol := range []string{"", "binary.k8s.io", "base64.binary.k8s.io", "other, base64.binary.k8s.io, binary.k8s.io", "other", "v5.channel.k8s.io"} {
		for _, query := range []string{"?follow=true", "?follow=true&tailLines=3&container=c", "?container=none", "?tailLines=-1", "?tailLines=403"} {
			path := fill("/api/v1/namespaces/NS/pods/a/log" + query)
			theirs, ours := readSocket(t, p.Theirs, path, protocol), readSocket(t, p.Ours, path, protocol)
			if theirs != ours {
				t.Errorf("%s by %q\n\tKubernetes %s\n\tanykind    %s", path, protocol, theirs, ours)
			}
			t.Log(ours)
		}
	}
}

// prepareBoth sends requests to both servers, none of which may fail.
func prepareBoth(t *testing.T, p *servers.Pair, requests []request, fill func(string) string) {
	t.Helper()
	for _, c := range []*wire.Client{p.Theirs, p.Ours} {
		x := &side{client: c}
		for _, r := range requests {
			r.path, r.body = fill(r.path), fill(r.body)
			if a := x.do(t, r); a.Code >= http.StatusBadRequest {
				t.Fatalf("%s: %d %s", r.path, a.Code, a.Body)
			}
		}
	}
}

// converse upgrades a connection and sends a text. It returns the request at the other end, and the
// echo.
func converse(t *testing.T, c *wire.Client, method, path, protocol string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", c.Host(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\nUser-Agent: client\r\nContent-Length: 0\r\n\r\n", method, path, servers.Token, protocol)
	answers := bufio.NewReader(conn)
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		said, _ := io.ReadAll(answer.Body) // a body that fails to arrive is empty
		return fmt.Sprint(answer.StatusCode, " ", string(said))
	}
	asked, err := answers.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, "ping")
	line, err := answers.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(asked) + ", and then " + strings.TrimSpace(line)
}
