package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/anykind/anykind/internal/network/proxy"
)

// A WebSocket with SPDY inside becomes a connection of SPDY, whose bytes flow in both directions. A server may refuse it.
func TestTunnel(t *testing.T) {
	for _, tt := range []struct {
		path, protocol string
		code           int
		want           string // the bytes of the tunnel, or the body of another answer
		counted        int
	}{
		{"/spdy", "SPDY/3.1+portforward.k8s.io", 101, "POST /spdy SPDY/3.1 [portforward.k8s.io] [], ping", 101},
		{"/websocket", "SPDY/3.1+portforward.k8s.io", 500, "unable to upgrade: missing upgrade headers in response\n", 500},
		{"/refuse", "SPDY/3.1+portforward.k8s.io", 403, "no\n", 403},
		{"/ok", "SPDY/3.1+portforward.k8s.io", 500, "invalid upgrade response: status code 200", 0},
		{"/refuse", "v4.channel.k8s.io", 403, "no\n", 0},
	} {
		t.Run(tt.path+" "+tt.protocol, func(t *testing.T) {
			behind := httptest.NewServer(http.HandlerFunc(portforward))
			defer behind.Close()
			to, err := url.Parse(behind.URL + tt.path)
			if err != nil {
				t.Fatal(err)
			}
			transport := proxy.Transport(new(net.Dialer).DialContext)
			counted := make(chan int, 2)
			tunnel := proxy.Tunnel{Stream: proxy.Stream{To: to, Transport: transport}, Answered: func(code int) { counted <- code }}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(counted)
				tunnel.ServeHTTP(w, r)
			}))
			defer s.Close()
			if code, got := dialTunnel(t, s, tt.protocol); code != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("%d %s, want %d %s", code, got, tt.code, tt.want)
			}
			var all []int
			for code := range counted {
				all = append(all, code)
			}
			if tt.counted == 0 && len(all) > 0 || tt.counted != 0 && !slices.Equal(all, []int{tt.counted}) {
				t.Errorf("counted %d, want %d", all, tt.counted)
			}
		})
	}
}

// portforward upgrades a connection as the path says, and repeats the request and then the input.
func portforward(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/refuse":
		http.Error(w, "no", http.StatusForbidden)
		return
	case "/ok":
		return
	}
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n", strings.Replace(r.URL.Path[1:], "spdy", "SPDY/3.1", 1))
	fmt.Fprint(both, r.Method, " ", r.URL.Path, " ", r.Header.Get("Upgrade"), " ", r.Header["X-Stream-Protocol-Version"], " ", r.Header["Sec-Websocket-Key"], ", ")
	_ = both.Flush()
	_, _ = io.CopyN(conn, both, int64(len("ping")))
}

// dialTunnel returns the bytes of a tunnel with the status 101, or the status and the body of a refusal.
func dialTunnel(t *testing.T, s *httptest.Server, protocol string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	config, err := websocket.NewConfig("ws://server/", "http://client")
	if err != nil {
		t.Fatal(err)
	}
	config.Protocol = []string{protocol}
	var raw strings.Builder
	c, err := websocket.NewClient(config, struct {
		io.Reader
		io.Writer
		io.Closer
	}{io.TeeReader(conn, &raw), conn, conn})
	if err != nil {
		a, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(raw.String()), conn)), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, _ := io.ReadAll(a.Body)
		return a.StatusCode, string(body)
	}
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return http.StatusSwitchingProtocols, string(got)
}
