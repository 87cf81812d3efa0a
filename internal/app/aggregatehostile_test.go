package app

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// raw sends the text of a request on a new connection, and returns the response.
func (f *fakeServer) raw(as *tls.Certificate, text string) (*http.Response, *bufio.Reader, net.Conn) {
	f.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*as}, NextProtos: []string{"http/1.1"}}
	conn, err := tls.Dial("tcp", f.app.Address().String(), config)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil { // if the test hangs
		f.t.Fatal(err)
	}
	fmt.Fprint(conn, strings.ReplaceAll(text, "\n", "\r\n"))
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, &http.Request{Method: strings.Fields(text)[0]})
	if err != nil {
		f.t.Fatal(err)
	}
	return answer, reader, conn
}

// spoofed lists the headers with which a client could claim another identity. This server trusts
// some of them from front proxies.
const spoofed = `X-Remote-User: root
x-remote-uid: 1
X-REMOTE-GROUP: system:masters
X-Remote-Extra-Scopes: all
x-remote-extra-a%2fb: c
X-Other-User: root
X-Other-Extra-Key: value
`

// A Backend receives the identity that this server has authenticated, whatever the client sends.
func TestSpoofedHeaders(t *testing.T) {
	o := Options{}
	o.Authentication.FrontProxy = o.Authentication.FrontProxy.OrOwn()
	o.Authentication.FrontProxy.Headers.Username = append(o.Authentication.FrontProxy.Headers.Username, "X-Other-User")
	o.Authentication.FrontProxy.Headers.ExtraPrefix = append(o.Authentication.FrontProxy.Headers.ExtraPrefix, "X-Other-Extra-")
	f := behind(t, o)
	seen := make(chan string, 1)
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // trailers follow the body
		var trailer []string
		for name := range r.Trailer {
			trailer = append(trailer, "trailer "+name)
		}
		seen <- identityOf(r) + strings.Join(trailer, "\n")
		if r.Header.Get("Upgrade") != "" {
			http.Error(w, "no", http.StatusForbidden)
		}
	})
	const want = "certificate: front-proxy-client\n" +
		"X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id: X509SHA256=*\n" +
		"X-Remote-Group: system:masters, system:authenticated\n" +
		"X-Remote-User: kubernetes-admin"
	path := flowers + "/namespaces/default/roses"
	for name, text := range map[string]string{
		"headers":               "GET " + path + " HTTP/1.1\nHost: x\n" + spoofed + "\n",
		"headers twice":         "GET " + path + " HTTP/1.1\nHost: x\n" + spoofed + spoofed + "\n",
		"headers of one hop":    "GET " + path + " HTTP/1.1\nHost: x\nConnection: X-Remote-User, X-Remote-Group, x-remote-extra-scopes\n" + spoofed + "\n",
		"headers of an upgrade": "GET " + path + " HTTP/1.1\nHost: x\nConnection: Upgrade, X-Remote-User\nUpgrade: SPDY/3.1\n" + spoofed + "\n",
		"a trailer":             "POST " + path + " HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nTrailer: X-Remote-User\n\n1\na\n0\nX-Remote-User: root\n\n",
		"an unknown trailer":    "POST " + path + " HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n1\na\n0\nX-Remote-Group: system:masters\n\n",
	} {
		answer, _, _ := f.raw(admin(t, f.app), text)
		got := fmt.Sprint("not asked: ", answer.Status)
		if len(seen) > 0 {
			got = <-seen
		}
		if start, rest, ok := strings.Cut(got, "X509SHA256="); ok {
			_, rest, _ = strings.Cut(rest, "\n")
			got = start + "X509SHA256=*\n" + rest
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", f.app.URL()+path, nil)
	for line := range strings.Lines(spoofed) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		r.Header[name] = []string{value}
	}
	r.Header.Set("Impersonate-User", "jane")
	r.Header.Set("Impersonate-Group", "system:masters") // an impersonated group that may make the request
	r.Header.Set("Impersonate-Extra-Key", "value")
	answer, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	if got, want := <-seen, "certificate: front-proxy-client\nX-Remote-Extra-Key: value\nX-Remote-Group: system:masters, system:authenticated\nX-Remote-User: jane"; got != want {
		t.Errorf("over HTTP/%d, impersonated:\n%s\nwant\n%s", answer.ProtoMajor, got, want)
	}
}

// A connection is upgraded only if the Backend has accepted the upgrade. Otherwise a client could
// send requests in the name of this server.
func TestUpgrades(t *testing.T) {
	f := behind(t, Options{})
	path := flowers + "/namespaces/default/roses/a/exec"
	root := atomic.Bool{} // a request of root reached the Backend
	agreed := func(protocol string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, both, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
			_ = both.Flush()
			_, _ = io.Copy(conn, both)
		}
	}
	code := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Remote-User") == "root" {
				root.Store(true)
			}
			w.Header().Set("Location", "https://192.0.2.1/")
			w.WriteHeader(code)
			fmt.Fprint(w, "said")
		}
	}
	f.answer(agreed("SPDY/3.1"))
	c := upgrade(t, f.app, "POST", path, "SPDY/3.1")
	fmt.Fprintln(c, "hello")
	if line, err := c.answers.ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	for _, tt := range []struct {
		name    string
		backend http.HandlerFunc
		code    int
		body    string
	}{
		{"a redirect", code(302), 503, "invalid upgrade response: status code 302\n"},
		{"success", code(200), 503, "invalid upgrade response: status code 200\n"},
		{"a refusal", code(403), 403, "said"},
		{"a failure", code(500), 500, "said"},
		{"another protocol", agreed("websocket"), 503, `error dialing backend: backend tried to switch protocol "websocket" when "SPDY/3.1" was requested` + "\n"},
	} {
		f.answer(tt.backend)
		// The second request would reach the Backend with a forged user if the connection were
		// piped.
		second := "GET " + flowers + "/secret HTTP/1.1\nHost: x\nX-Remote-User: root\nX-Remote-Group: system:masters\n\n"
		answer, reader, conn := f.raw(admin(t, f.app), "POST "+path+" HTTP/1.1\nHost: x\nConnection: Upgrade\nUpgrade: SPDY/3.1\n\n")
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != tt.code || string(body) != tt.body || answer.Header.Get("Location") != "" && tt.code == 503 {
			t.Errorf("%s: %d %q", tt.name, answer.StatusCode, body)
		}
		fmt.Fprint(conn, strings.ReplaceAll(second, "\n", "\r\n"))
		if again, err := http.ReadResponse(reader, nil); err == nil {
			_, _ = io.Copy(io.Discard, again.Body)
		}
		if root.Load() {
			t.Errorf("%s: a client has talked to the Backend in the name of this server", tt.name)
		}
	}
}

// A redirect of a Backend becomes a 502: neither this server nor the client follows it.
func TestRedirects(t *testing.T) {
	f := behind(t, Options{})
	for _, tt := range []struct {
		code     int
		location string
		want     int
		body     string
	}{
		{301, "https://192.0.2.1/", 502, "the backend attempted to redirect this request, which is not permitted"},
		{302, "/api/v1/secrets", 502, "the backend attempted to redirect this request, which is not permitted"},
		{307, "//evil.example.com", 502, "the backend attempted to redirect this request, which is not permitted"},
		{308, "x", 502, "the backend attempted to redirect this request, which is not permitted"},
		{304, "", 304, ""},
		{201, "/apis/flowers.dev/v1/roses/a", 201, "said"},
	} {
		f.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Said", "yes")
			w.Header().Set("Set-Cookie", "a=b")
			if tt.location != "" {
				w.Header().Set("Location", tt.location)
			}
			w.WriteHeader(tt.code)
			fmt.Fprint(w, "said")
		})
		f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		r, _ := http.NewRequestWithContext(t.Context(), "GET", f.app.URL()+flowers+"/roses", nil)
		answer, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != tt.want || string(body) != tt.body {
			t.Errorf("%d to %q: %d %q", tt.code, tt.location, answer.StatusCode, body)
		}
		if tt.want == 502 && (answer.Header.Get("Location") != "" || answer.Header.Get("Set-Cookie") != "" || answer.Header.Get("Content-Type") != "text/plain; charset=utf-8") {
			t.Errorf("%d to %q: %v", tt.code, tt.location, answer.Header)
		}
	}
}

// Only the paths of its APIServices reach a Backend, and a request cannot loop.
func TestPaths(t *testing.T) {
	f := behind(t, Options{})
	f.answer(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.EscapedPath()) })
	for path, want := range map[string]string{
		flowers + "/roses":                    "200 " + flowers + "/roses",
		flowers + "/namespaces/a%2Fb/roses":   "200 " + flowers + "/namespaces/a/b/roses", // as authorized
		flowers + "/../../../metrics":         "404 404 page not found\n",
		flowers + "/%2e%2e/v2/roses":          "404 404 page not found\n",
		flowers + "/roses/./a":                "404 404 page not found\n",
		"/apis/apps/../flowers.dev/v1/roses":  "404",
		"/apis/flowers.dev/v1beta1/roses":     "404",
		"/apis/flowers.dev.example/v1/roses":  "404",
		"/apis/Flowers.dev/v1/roses":          "404",
		"/apis//flowers.dev/v1/roses":         "404",
		flowers + "?timeout=1s":               "200 {",
		flowers + "/roses?timeout=nonsense":   "400 {",
		"/openapi/v3" + flowers + "/../roses": "404",
	} {
		answer, _, _ := f.raw(admin(t, f.app), "GET "+path+" HTTP/1.1\nHost: x\n\n")
		body, _ := io.ReadAll(answer.Body)
		if got := fmt.Sprint(answer.StatusCode, " ", string(body)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for hops, want := range map[int]int{0: 200, maxHopsOf - 1: 200, maxHopsOf: 508} {
		hop := strings.TrimSuffix(strings.Repeat("192.0.2.1, ", hops), ", ")
		answer, _, _ := f.raw(admin(t, f.app), "GET "+flowers+"/roses HTTP/1.1\nHost: x\nX-Forwarded-For: "+hop+"\n\n")
		if answer.StatusCode != want {
			t.Errorf("after %d servers: %d", hops, answer.StatusCode)
		}
	}
}

// maxHopsOf is the limit of servers on the way of a request.
const maxHopsOf = 16
