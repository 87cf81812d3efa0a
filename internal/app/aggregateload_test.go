package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Requests to a hanging Backend do not count against the limits of this server. They have a limit
// per Backend.
func TestHangingBackend(t *testing.T) {
	f := behind(t, Options{})
	hanging := make(chan struct{}, 1000)
	ended := atomic.Int64{}
	f.answer(func(_ http.ResponseWriter, r *http.Request) {
		hanging <- struct{}{}
		<-r.Context().Done()
		ended.Add(1)
	})
	const room = 400 // the limit per Backend, and of read requests to this server
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var clients sync.WaitGroup
	one := client(t, f.app, admin(t, f.app))
	for i := range room {
		if i%90 == 0 { // more than the buffers of a connection
			one = client(t, f.app, admin(t, f.app))
		}
		r, _ := http.NewRequestWithContext(ctx, "GET", f.app.URL()+flowers+"/roses", nil)
		clients.Go(func() {
			answer, err := one.Do(r)
			if err == nil {
				answer.Body.Close()
				t.Error("answered", answer.Status)
			}
		})
		<-hanging
	}
	if code, body := ask(t, f.client, "GET", f.app.URL()+flowers+"/roses", "", ""); code != http.StatusTooManyRequests {
		t.Errorf("one more than there is room for: %d %s", code, body)
	}
	for range 10 {
		f.must("GET", "/api/v1/namespaces", "", http.StatusOK)
		f.must("GET", "/apis/apps/v1/deployments", "", http.StatusOK)
	}
	leave()
	clients.Wait()
	for ended.Load() < room { // The Backend detects it a moment later.
		f.must("GET", "/livez", "", http.StatusOK)
	}
	f.answer(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "well") })
	f.must("GET", flowers+"/roses", "", http.StatusOK)
}

// A hostile response reaches only the clients of its Backend, and is read only as far as they read
// it.
func TestHostileAnswers(t *testing.T) {
	f := behind(t, Options{}, func(s *httptest.Server) { s.EnableHTTP2 = false }) // so that it can forge framing
	hijacked := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, both, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(both, strings.ReplaceAll(text, "\n", "\r\n"))
			_ = both.Flush()
		}
	}
	for _, tt := range []struct {
		name    string
		backend http.HandlerFunc
		want    string
	}{
		// Without the close, the rest may be the response to the next request on the connection.
		{"more than it says", hijacked("HTTP/1.1 200 OK\nConnection: close\nContent-Length: 3\n\nabcdef"), "200 abc"},
		{"less than it says", hijacked("HTTP/1.1 200 OK\nContent-Length: 9\n\nabc"), "200 abc, cut off"},
		{"two lengths", hijacked("HTTP/1.1 200 OK\nContent-Length: 3\nContent-Length: 6\n\nabcdef"), "503 error trying to reach service: "},
		{"chunks that end early", hijacked("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\nabc\n"), "200 abc, cut off"},
		{"a chunk without a length", hijacked("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz\nabc\n"), "no answer"},
		{"no HTTP", hijacked("SSH-2.0-OpenSSH\n"), "503 error trying to reach service: "},
		{"nothing", hijacked(""), "503 error trying to reach service: "},
		{"a header without an end", hijacked("HTTP/1.1 200 OK\nX-A: " + strings.Repeat("a", 2<<20)), "503 error trying to reach service: "},
		{"many headers", hijacked("HTTP/1.1 200 OK\n" + strings.Repeat("X-A: a\n", 1<<18) + "\n"), "503 error trying to reach service: "},
		{"an upgrade without a request for one", hijacked("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: SPDY/3.1\n\n"), "503 error trying to reach service: "},
	} {
		f.answer(tt.backend)
		if got := f.read("GET", flowers+"/roses"); !strings.HasPrefix(got, tt.want) {
			if len(got) > 200 {
				got = got[:200]
			}
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		f.must("GET", "/api/v1/namespaces/default", "", http.StatusOK)
	}
}

// read sends a request, and returns the code and the part of the body that arrived. A response that
// breaks off before its first byte counts as none, because its header may or may not arrive.
func (f *fakeServer) read(method, path string) string {
	f.t.Helper()
	r, _ := http.NewRequestWithContext(f.t.Context(), method, f.app.URL()+path, nil)
	answer, err := f.client.Do(r)
	if err != nil {
		return "no answer"
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil && len(data) == 0 {
		return "no answer"
	}
	got := fmt.Sprint(answer.StatusCode, " ", string(data))
	if err != nil {
		got += ", cut off"
	}
	return got
}

// An endless response is streamed, and ends when its client disconnects.
func TestEndlessAnswer(t *testing.T) {
	f := behind(t, Options{})
	ended := make(chan int, 1)
	f.answer(func(w http.ResponseWriter, _ *http.Request) {
		page, sent := make([]byte, 1<<16), 0
		for {
			n, err := w.Write(page)
			if sent += n; err != nil {
				break
			}
		}
		ended <- sent
	})
	r, _ := http.NewRequestWithContext(t.Context(), "GET", f.app.URL()+flowers+"/roses?watch=1", nil)
	answer, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, answer.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if sent := <-ended; sent > 64<<20 {
		t.Errorf("%d bytes were sent to a client that took 1 MiB", sent)
	}
}

// The timeout of a request applies whatever the Backend does.
func TestSlowBackend(t *testing.T) {
	f := behind(t, Options{})
	for name, backend := range map[string]http.HandlerFunc{
		"no header": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"no end": func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		ended := make(chan struct{})
		f.answer(func(w http.ResponseWriter, r *http.Request) { backend(w, r); close(ended) })
		got := f.read("GET", flowers+"/roses?timeout=50ms")
		if !strings.HasPrefix(got, "504 ") && got != "no answer" {
			t.Errorf("%s: %s", name, got)
		}
		<-ended
	}
}

// A watch is streamed, and ends with the Backend, with the client, and with this server.
func TestForwardedWatch(t *testing.T) {
	f := behind(t, Options{})
	events, ended := make(chan string), make(chan struct{}, 1)
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case e := <-events:
				if e == "" {
					return
				}
				fmt.Fprintln(w, e)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	watch := func() (io.ReadCloser, func() string) {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", f.app.URL()+flowers+"/roses?watch=1", nil)
		answer, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Body, func() string {
			line := make([]byte, 100)
			n, err := answer.Body.Read(line)
			if err != nil && !errors.Is(err, io.EOF) {
				return "cut off"
			}
			return strings.TrimSpace(string(line[:n]))
		}
	}
	body, next := watch()
	for _, e := range []string{"one", "two"} {
		events <- e
		if got := next(); got != e {
			t.Errorf("%q, want %q", got, e)
		}
	}
	events <- ""
	<-ended
	if got := next(); got != "" {
		t.Errorf("after the end: %q", got)
	}
	body.Close()
	body, _ = watch()
	body.Close()
	<-ended
	body, next = watch()
	defer body.Close()
	stopped := make(chan error)
	go func() { stopped <- f.app.server.Drain(t.Context()) }()
	<-ended
	_ = next()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// Connections to a Backend are closed after its last APIService is deleted, and no goroutine is
// left.
func TestConnectionsGoWithTheirAPIService(t *testing.T) {
	var open atomic.Int64
	f := behind(t, Options{}, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		}
	})
	f.must("GET", flowers+"/roses", "", http.StatusOK)
	if open.Load() == 0 {
		t.Fatal("no connection is kept")
	}
	f.must("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.flowers.dev", "", http.StatusOK)
	f.must("GET", flowers+"/roses", "", http.StatusNotFound)
	for open.Load() > 0 && t.Context().Err() == nil { // The Backend detects it a moment later.
		f.must("GET", "/livez", "", http.StatusOK)
	}
}

// An APIService that leads back to this server is not available. A request cannot loop even if its
// status is set to available.
func TestLeadingBack(t *testing.T) {
	o := Options{Controllers: []string{}}
	o.Authentication.FrontProxy = o.Authentication.FrontProxy.OrOwn()
	f := &fakeServer{t: t, app: start(t, o)}
	t.Cleanup(func() { stop(t, f.app) })
	f.client = client(t, f.app, admin(t, f.app))
	at, err := url.Parse(f.app.URL())
	if err != nil {
		t.Fatal(err)
	}
	f.must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"here"},"spec":{"type":"ExternalName","externalName":"localhost"}}`, http.StatusCreated)
	f.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(`{"metadata":{"name":"v1.round.dev"},"spec":{
		"group":"round.dev","version":"v1","groupPriorityMinimum":1000,"versionPriority":15,"insecureSkipTLSVerify":true,
		"service":{"namespace":"default","name":"here","port":%s}}}`, at.Port()), http.StatusCreated)
	f.must("GET", "/apis/round.dev/v1/things", "", http.StatusServiceUnavailable)
	f.must("PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1.round.dev/status", `{"status":{"conditions":[{"type":"Available","status":"True"}]}}`, http.StatusOK)
	f.must("GET", "/apis/round.dev/v1/things", "", http.StatusLoopDetected)
	f.must("GET", "/api/v1/namespaces/default", "", http.StatusOK)
}
