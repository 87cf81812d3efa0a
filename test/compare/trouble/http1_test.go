package trouble

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/servers"
)

const (
	authorization = "Authorization: Bearer " + servers.Token + "\r\n"
	host          = "Host: x\r\n"
	configMap     = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"}}`
	collection    = "/api/v1/namespaces/default/configmaps"
)

func chunked(body string, trailer string) string {
	return fmt.Sprintf("%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, trailer)
}

func get(path, more string) string {
	return "GET " + path + " HTTP/1.1\r\n" + host + authorization + more + "\r\n"
}

func post(name, more, body string) string {
	body = strings.ReplaceAll(body, "NAME", name)
	return "POST " + collection + " HTTP/1.1\r\n" + host + authorization + "Content-Type: application/json\r\n" + more + "\r\n" + body
}

// Raw bytes on a connection get the same responses from both servers.
func TestHTTP1(t *testing.T) {
	p := start(t, "--anonymous-auth=true")
	length := fmt.Sprintf("Content-Length: %d\r\n", len(configMap)-len("NAME")+len("a1"))
	for _, tt := range []struct{ name, send string }{
		{"get", get("/version", "")},
		{"close", get("/version", "Connection: close\r\n")},
		{"two at once", get("/version", "") + get("/healthz", "")},
		{"five at once, one of them wrong", get("/version", "") + get("/healthz", "") + get("/none", "") + "BOGUS\r\n\r\n" + get("/version", "")},
		{"a write and a read at once", post("p1", length, configMap) + get(collection+"/p1", "")},
		{"HTTP/1.0", "GET /version HTTP/1.0\r\n" + authorization + "\r\n"},
		{"HTTP/1.0 that stays", "GET /version HTTP/1.0\r\nConnection: keep-alive\r\n" + authorization + "\r\n" + get("/healthz", "")},
		{"HTTP/0.9", "GET /version\r\n"},
		{"HTTP/1.2", "GET /version HTTP/1.2\r\n" + host + "\r\n"},
		{"HTTP/3.0", "GET /version HTTP/3.0\r\n" + host + "\r\n"},
		{"Expect: 100-continue", post("e1", length+"Expect: 100-continue\r\n", configMap)},
		{"Expect: 100-continue that is not allowed", strings.Replace(post("e2", length+"Expect: 100-continue\r\n", configMap), servers.Token, "unknown", 1)},
		{"Expect: something", post("e3", length+"Expect: something\r\n", configMap)},
		{"chunks", post("c1", "Transfer-Encoding: chunked\r\n", chunked(strings.ReplaceAll(configMap, "NAME", "c1"), ""))},
		{"chunks with a trailer", post("c2", "Transfer-Encoding: chunked\r\nTrailer: X\r\n", chunked(strings.ReplaceAll(configMap, "NAME", "c2"), "X: y\r\n"))},
		{"chunks with a trailer that says who asks", "POST " + collection + " HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n" + chunked(configMap, authorization)},
		{"chunks and a length", post("c3", "Transfer-Encoding: chunked\r\n"+length, chunked(strings.ReplaceAll(configMap, "NAME", "c3"), ""))},
		{"a chunk that is none", post("c4", "Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n")},
		{"chunks, twice", post("c5", "Transfer-Encoding: chunked, chunked\r\n", chunked(configMap, ""))},
		{"gzip as a transfer encoding", post("c6", "Transfer-Encoding: gzip\r\n", configMap)},
		{"two lengths", post("l1", length+"Content-Length: 3\r\n", configMap)},
		{"the same length twice", post("l2", length+length, configMap)},
		{"a length below zero", post("l3", "Content-Length: -1\r\n", configMap)},
		{"a length with a sign", post("l4", "Content-Length: +65\r\n", configMap)},
		{"no length", post("l5", "", "")},
		{"upgrade to h2c", get("/version", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n")},
		{"upgrade to a websocket", get("/version", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n")},
		{"upgrade of a list to a websocket", get(collection+"?labelSelector=none", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n")},
		{"upgrade to SPDY", get("/version", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n")},
		{"upgrade to anything", get(collection+"?labelSelector=none", "Connection: Upgrade\r\nUpgrade: anything\r\n")},
		{"the whole URL", get("https://other/version", "")},
		{"another scheme", get("ftp://other/version", "")},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host + authorization + "\r\n"},
		{"GET *", "GET * HTTP/1.1\r\n" + host + authorization + "\r\n"},
		{"CONNECT", "CONNECT x:443 HTTP/1.1\r\n" + host + authorization + "\r\n"},
		{"TRACE", "TRACE /version HTTP/1.1\r\n" + host + authorization + "\r\n"},
		{"a path without a slash", get("version", "")},
		{"no host", "GET /version HTTP/1.1\r\n" + authorization + "\r\n"},
		{"two hosts", get("/version", "Host: y\r\n")},
		{"a host that is none", "GET /version HTTP/1.1\r\nHost: a b\r\n\r\n"},
		{"a name with a space", get("/version", "X : y\r\n")},
		{"a folded line", get("/version", "X: y\r\n z\r\n")},
		{"a value with a zero", get("/version", "X: \x00\r\n")},
		{"line feeds alone", strings.ReplaceAll(get("/version", ""), "\r\n", "\n")},
		{"carriage returns alone", strings.ReplaceAll(get("/version", ""), "\r\n", "\r")},
		{"a head of two megabytes", get("/version", strings.Repeat("X: "+strings.Repeat("y", 8000)+"\r\n", 260))},
		{"a path of two megabytes", get("/"+strings.Repeat("x", 2<<20), "")},
		{"ten thousand fields", get("/version", strings.Repeat("X: y\r\n", 10_000))},
		{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"a body on GET", get("/version", "Content-Length: 2\r\n") + "{}" + get("/healthz", "")},
		{"half a request line", "GET /vers"},
		{"nothing", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said [2]string
			for i, c := range clients(p) {
				said[i] = exchange(t, c.Host(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}, tt.send)
			}
			if said[0] != said[1] {
				t.Errorf("%s says\n%s\n%s says\n%s", names[0], said[0], names[1], said[1])
			}
		})
	}
	t.Run("without TLS", func(t *testing.T) {
		var said [2]string
		for i, c := range clients(p) {
			said[i] = exchange(t, c.Host(), nil, get("/version", ""))
		}
		if said[0] != said[1] {
			t.Errorf("%s says\n%s\n%s says\n%s", names[0], said[0], names[1], said[1])
		}
	})
}

// silence is the time without data after which a server counts as waiting for more.
const silence = 700 * time.Millisecond

// exchange writes to a connection and returns a summary: each response, and whether the server closed
// the connection.
func exchange(t *testing.T, address string, config *tls.Config, send string) string {
	t.Helper()
	conn, err := dial(address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, send) }() // the result shows a server that stops reading
	var b strings.Builder
	r := bufio.NewReader(conn)
	for {
		if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(r, &http.Request{Method: methodOf(send)})
		if err != nil {
			fmt.Fprintln(&b, ending(err))
			return b.String()
		}
		body, err := io.ReadAll(response.Body)
		fmt.Fprintf(&b, "%s %s; %s; connection %q", response.Proto, response.Status, response.Header.Get("Content-Type"), response.Header["Connection"])
		if err != nil {
			fmt.Fprintf(&b, "; the body ends with %s", ending(err))
		}
		if response.StatusCode >= 400 {
			fmt.Fprintf(&b, "; %.200s", body)
		}
		b.WriteString("\n")
		if response.StatusCode == http.StatusSwitchingProtocols {
			return b.String()
		}
	}
}

func methodOf(send string) string {
	method, _, _ := strings.Cut(send, " ")
	return method
}

// ending describes the end of a connection, independent of timing.
func ending(err error) string {
	if timeout, ok := err.(interface{ Timeout() bool }); ok && timeout.Timeout() {
		return "waits"
	}
	return "ended"
}
