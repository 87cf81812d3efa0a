package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serve starts s on a free port. It returns the URL and a channel with the result of Serve.
func serve(t *testing.T, s *Server) (base string, served chan error) {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served = make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return "https://" + l.Addr().String(), served
}

func TestDrain(t *testing.T) {
	written, release := make(chan struct{}), make(chan struct{})
	o := everyone(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			_, _ = io.WriteString(w, "first event\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		close(written)
		<-release
		if r.Context().Err() != nil {
			t.Error("a write under way was cut short")
		}
		_, _ = io.WriteString(w, "stored")
	})
	config, client := certificate(t)
	o.TLS = config
	s := New(o)
	base, served := serve(t, s)
	get := func(method, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer bob")
		return client.Do(r)
	}

	watch, err := get("GET", "/apis/g/v1/things?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	if watch.ProtoMajor != 2 {
		t.Errorf("spoke %s", watch.Proto)
	}
	answers := make(chan string, 1)
	go func() {
		r, err := get("POST", "/apis/g/v1/things")
		if err != nil {
			answers <- err.Error()
			return
		}
		body, _ := io.ReadAll(r.Body)
		answers <- string(body)
	}()
	<-written

	drained := make(chan error, 1)
	go func() { drained <- s.Drain(context.Background()) }()
	<-s.Draining()
	if w := ask(s, "GET", "/readyz", ""); w.Code != 500 || !strings.Contains(w.Body.String(), "[-]shutdown failed") {
		t.Errorf("while draining /readyz answered %d %s", w.Code, w.Body)
	}
	if w := ask(s, "GET", "/livez", ""); w.Code != 200 {
		t.Errorf("while draining /livez answered %d", w.Code)
	}
	if body, err := io.ReadAll(watch.Body); err != nil || string(body) != "first event\n" {
		t.Errorf("the watch ended with %q, %v", body, err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if c, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "https://"), time.Second); err == nil {
		c.Close()
		t.Error("the port still takes connections")
	}
	select {
	case err := <-drained:
		t.Errorf("drained before the write was done: %v", err)
	default:
	}
	close(release)
	if got := <-answers; got != "stored" {
		t.Errorf("the write under way got %q", got)
	}
	if err := <-drained; err != nil {
		t.Errorf("Drain: %v", err)
	}
}

func TestDrainDoesNotWaitForEver(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	o := everyone(func(http.ResponseWriter, *http.Request) { close(arrived); <-release })
	config, client := certificate(t)
	o.TLS = config
	s := New(o)
	base, served := serve(t, s)
	go func() {
		if r, err := client.Get(base + "/api/v1/things"); err == nil {
			r.Body.Close()
		}
	}()
	<-arrived
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain: %v", err)
	}
	close(release)
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Listen(t.Context(), l.Addr().String())
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()+": another program is using the port") {
		t.Errorf("second Listen: %v", err)
	}
}

// A panic ends its request, not the connection that others share.
func TestConnectionSurvivesPanic(t *testing.T) {
	o := everyone(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("panic") {
			panic("a bug")
		}
		_, _ = io.WriteString(w, r.RemoteAddr)
	})
	config, client := certificate(t)
	o.TLS = config
	s := New(o)
	base, _ := serve(t, s)
	defer s.Drain(context.Background())
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer bob")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	_, before := get("/api")
	if code, _ := get("/api?panic"); code != 500 {
		t.Errorf("answered %d", code)
	}
	if _, after := get("/api"); after != before {
		t.Errorf("the connection %s became %s", before, after)
	}
}

func BenchmarkFilters(b *testing.B) {
	s := New(everyone(nothing))
	w := &discard{header: http.Header{}}
	r := newRequest("GET", "/apis/g/v1/namespaces/n/things/t", "")
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.ServeHTTP(w, r)
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
