package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// server responds with its request, or with a stream to a watch.
func server(t *testing.T) *Client {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.RequestURI, "?watch") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintln(w, `{"type":"ADDED"}`)
			w.(http.Flusher).Flush()
			fmt.Fprintln(w, `{"type":"DELETED"}`)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s %s %q %s", r.Proto, r.Method, r.RequestURI, r.Header["X"], body)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c, err := NewClient(s.URL, &tls.Config{InsecureSkipVerify: true}, "token")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A path is sent unmodified.
func TestPathsAreNotMended(t *testing.T) {
	c := server(t)
	for _, path := range []string{"/a/b", "//a//b", "/a/../b", "/a/%2e%2e/%2F?x=%zz", "/a?b?c=&&", "/%C3%A9"} {
		for _, one := range []bool{false, true} {
			a := c.Do(t.Context(), Step{Method: "GET", Path: path, HTTP1: one})
			proto := map[bool]string{false: "HTTP/2.0", true: "HTTP/1.1"}[one]
			want := fmt.Sprintf("%s GET %s [] ", proto, path)
			if one && strings.HasPrefix(path, "//") {
				want = fmt.Sprintf("%s GET https://%s%s [] ", proto, c.Host(), path)
			}
			if string(a.Body) != want {
				t.Errorf("%s came as %q, want %q (%s)", path, a.Body, want, a.Failed)
			}
		}
	}
}

func TestHeadersAndBodies(t *testing.T) {
	c := server(t)
	a := c.Do(t.Context(), Step{Method: "PUT", Path: "/", Header: []Field{{"X", "1"}, {"x", "2"}}, Body: []byte("body"), Gzip: true})
	text, compressed, _ := bytes.Cut(a.Body, []byte(`"] `))
	if string(text) != `HTTP/2.0 PUT / ["1" "2` {
		t.Errorf("came as %q", text)
	}
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r); err != nil || string(body) != "body" {
		t.Errorf("the body is %q, %v", body, err)
	}
}

func TestStreams(t *testing.T) {
	a := server(t).Do(t.Context(), Step{Method: "GET", Path: "/?watch", Watch: true})
	if a.Stream == nil {
		t.Fatalf("no stream: %+v", a)
	}
	<-a.Stream.done
	if n, ended := a.Stream.Len(); n != 2 || !ended || a.Stream.Failed() != "" {
		t.Errorf("%d frames, ended %v, failed %q", n, ended, a.Stream.Failed())
	}
	a.Stream.Close()
}

func TestFramesWithTheirLength(t *testing.T) {
	next := frames("application/vnd.kubernetes.protobuf;stream=watch", bufio.NewReader(strings.NewReader("\x00\x00\x00\x02ab\x00\x00\x00\x01c")))
	for _, want := range []string{"ab", "c"} {
		if frame, err := next(); err != nil || string(frame) != want {
			t.Errorf("%q, %v, want %q", frame, err, want)
		}
	}
	if _, err := next(); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
}

// References of a step resolve to values from the same server.
func TestFor(t *testing.T) {
	answers := map[int]*Answer{3: {Body: []byte(`{"metadata":{"uid":"u"},"items":[{"x":"y"}]}`)}}
	s := Step{Path: "/" + Scope + "?continue=" + Refer(3, "metadata.uid"), Body: []byte(`{"a":"` + Refer(3, "items.0.x") + `","b":"` + Refer(9, "x") + `"}`),
		Header: []Field{{"X", Scope}}}
	got := s.For("s00001x00z", answers)
	if got.Path != "/s00001x00z?continue=u" || string(got.Body) != `{"a":"y","b":"none"}` || got.Header[0].Value != "s00001x00z" {
		t.Errorf("%+v", got)
	}
	if s.Header[0].Value != Scope {
		t.Error("the step itself was changed")
	}
}

// Names of sequences are unique and have the length of the placeholder.
func TestScopeNames(t *testing.T) {
	seen := map[string]bool{}
	for n := range 5000 {
		for _, attempt := range []int{0, 1, 40} {
			name := ScopeName(n*7919, attempt)
			if len(name) != len(Scope) || seen[name] {
				t.Fatalf("%q of %d, attempt %d", name, n, attempt)
			}
			seen[name] = true
		}
	}
}
