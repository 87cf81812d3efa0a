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

	"github.com/anykind/anykind/internal/network/proxy"
)

// backend answers as the query demands, or echoes the request.
func backend(w http.ResponseWriter, r *http.Request) {
	switch to := r.URL.Query().Get("to"); {
	case to != "":
		w.Header().Set("Location", strings.ReplaceAll(to, "SELF", r.Host))
		w.WriteHeader(http.StatusFound)
	case r.URL.Path == "/refuse":
		http.Error(w, "no", http.StatusForbidden)
	case r.Header.Get("Upgrade") == "echo":
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = both.Flush()
		_, _ = io.Copy(conn, both)
	default:
		body, _ := io.ReadAll(r.Body) // a missing body is not echoed
		fmt.Fprintf(w, "%s %s %s uri=%s", r.Method, r.URL.RequestURI(), body, r.Header.Get("X-Forwarded-Uri"))
	}
}

// front starts a server that forwards /p as a Page and /s as a Stream to a backend. /gone and
// /s-gone have no backend.
func front(t *testing.T) *httptest.Server {
	behind := httptest.NewServer(http.HandlerFunc(backend))
	t.Cleanup(behind.Close)
	at, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := proxy.Transport(new(net.Dialer).DialContext)
	t.Cleanup(transport.CloseIdleConnections)
	unused := closed(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, below, found := strings.Cut(r.URL.Path[1:], "/")
		if found {
			below = "/" + strings.TrimSuffix(below, "/")
		}
		if below == "/" {
			below = ""
		}
		switch first {
		case "p":
			proxy.Page{To: proxy.At("", at.Hostname(), at.Port(), below), Transport: transport}.ServeHTTP(w, r)
		case "s":
			proxy.Stream{To: proxy.At("http", at.Hostname(), at.Port(), below), Transport: transport}.ServeHTTP(w, r)
		case "gone":
			proxy.Page{To: proxy.At("http", "127.0.0.1", unused, below), Transport: transport}.ServeHTTP(w, r)
		case "s-gone":
			proxy.Stream{To: proxy.At("http", "127.0.0.1", unused, below), Transport: transport}.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// closed returns a port without a listener.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Answers of a Page, and their redirects.
func TestPage(t *testing.T) {
	s := front(t)
	for _, tt := range []struct{ method, path, want string }{
		{"GET", "/p/x", "200 GET /x  uri=/p/x"},
		{"GET", "/p/x/?y=z", "200 GET /x/?y=z  uri=/p/x/"},
		{"POST", "/p/x", "200 POST /x sent uri=/p/x"},
		{"GET", "/p/", "200 GET /  uri=/p/"},
		{"GET", "/p?a=b", "301 to /p/?a=b"},
		{"POST", "/p", "200 POST / sent uri=/p"},
		{"GET", "/p/x?to=/there/", "302 to /p/there/"},
		{"GET", "/p/x?to=/p/there", "302 to /p/there"},
		{"GET", "/p/x?to=there", "302 to there"},
		{"GET", "/p/x?to=http://SELF/there", "302 to /p/there"},
		{"GET", "/p/x?to=https://example.com/there", "302 to https://example.com/there"},
		{"GET", "/p/refuse", "403 no\n"},
		{"GET", "/gone/x", "503 error trying to reach service: dial tcp"},
		{"GET", "/s/x", "400 Upgrade request required"},
	} {
		if got := ask(t, s, tt.method, tt.path); !strings.HasPrefix(got, tt.want) && !strings.Contains(got, `"message":"`+strings.TrimLeft(tt.want, "0123456789 ")) {
			t.Errorf("%s %s: %q, want %q", tt.method, tt.path, got, tt.want)
		}
	}
}

// ask returns the code of an answer, and its redirect or body.
func ask(t *testing.T, s *httptest.Server, method, path string) string {
	t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("sent")
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if to := answer.Header.Get("Location"); to != "" {
		return fmt.Sprint(answer.StatusCode, " to ", to)
	}
	return fmt.Sprint(answer.StatusCode, " ", string(said))
}

// Answers to upgrade requests.
func TestUpgrade(t *testing.T) {
	s := front(t)
	for _, tt := range []struct{ path, protocol, want string }{
		{"/s/x", "echo", "101"},
		{"/p/x", "echo", "101"},
		{"/s/refuse", "other", "403 no"},
		{"/s/x", "other", "500 invalid upgrade response: status code 200"},
		{"/s-gone/x", "echo", "500 error dialing backend: dial tcp"},
	} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: %s\r\n\r\n", tt.path, tt.protocol)
		answers := bufio.NewReader(conn)
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(answer.StatusCode)
		if answer.StatusCode == http.StatusSwitchingProtocols {
			fmt.Fprintln(conn, "ping")
			if line, err := answers.ReadString('\n'); line != "ping\n" || err != nil {
				t.Errorf("%s: %q, %v", tt.path, line, err)
			}
		} else {
			said, _ := io.ReadAll(answer.Body)
			_, words, _ := strings.Cut(tt.want, " ")
			if strings.Contains(string(said), words) {
				got += " " + words
			} else {
				got += " " + string(said)
			}
		}
		if got != tt.want {
			t.Errorf("%s as %s: %q, want %q", tt.path, tt.protocol, got, tt.want)
		}
		conn.Close()
	}
}

// Loopback and link-local addresses are not reachable.
func TestReachable(t *testing.T) {
	for address, want := range map[string]bool{
		"10.0.0.1": true, "192.0.2.1": true, "2001:db8::1": true, "fd00::1": true,
		"": false, "name": false, "127.0.0.1": false, "::1": false, "0.0.0.0": false, "169.254.169.254": false, "fe80::1": false, "224.0.0.1": false, "255.255.255.255": false,
	} {
		if got := proxy.Reachable(address); got != want {
			t.Errorf("%q: %t", address, got)
		}
	}
}
