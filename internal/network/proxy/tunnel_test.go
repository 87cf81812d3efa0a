package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/anykind/anykind/internal/network/proxy"
)

// A WebSocket with SPDY inside becomes a connection of SPDY, whose bytes flow in both directions. A server may refuse it.
func TestTunnel(t *testing.T) {
	for _, tt := range []struct {
		path, protocol string
		want           string
		code           int
	}{
		{"/spdy", "SPDY/3.1+portforward.k8s.io", "POST /spdy SPDY/3.1 [portforward.k8s.io] [], ping", 101},
		{"/websocket", "SPDY/3.1+portforward.k8s.io", "500 unable to upgrade: missing upgrade headers in response\n", 500},
		{"/refuse", "SPDY/3.1+portforward.k8s.io", "403 no\n", 403},
		{"/ok", "SPDY/3.1+portforward.k8s.io", "500 invalid upgrade response: status code 200", 0},
		{"/refuse", "v4.channel.k8s.io", "403 no\n", 0},
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
			s := httptest.NewServer(proxy.Tunnel{Stream: proxy.Stream{To: to, Transport: transport}, Answered: func(code int) { counted <- code }})
			defer s.Close()
			if got := dialTunnel(t, s, tt.protocol); !strings.HasPrefix(got, tt.want) && !strings.Contains(got, tt.want[4:]) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			s.Close() // waits for the handler
			close(counted)
			if got := <-counted; got != tt.code || len(counted) > 0 {
				t.Errorf("counted %d and %d more, want %d", got, len(counted), tt.code)
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

// dialTunnel returns all that comes through a tunnel, or an answer that is none.
func dialTunnel(t *testing.T, s *httptest.Server, protocol string) string {
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
		return fmt.Sprint(a.StatusCode, " ", string(body))
	}
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}
