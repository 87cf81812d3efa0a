package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/status"
)

// server is an HTTPS server that counts its connections.
type server struct {
	*httptest.Server
	connections atomic.Int64
	open        atomic.Int64
	closed      chan struct{} // receives a value for each connection that ends
}

func serve(t testing.TB, handle http.HandlerFunc) *server { return serveTLS(t, nil, handle) }

func serveTLS(t testing.TB, config *tls.Config, handle http.HandlerFunc) *server {
	s := &server{Server: httptest.NewUnstartedServer(handle), closed: make(chan struct{}, 1000)}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.connections.Add(1)
			s.open.Add(1)
		case http.StateClosed:
			s.open.Add(-1)
			s.closed <- struct{}{}
		}
	}
	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) config() *Config {
	return &Config{URL: s.URL + "/hook", CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func call(body string) Call {
	return Call{Body: []byte(body), Timeout: 20 * time.Second, MaxReply: 100}
}

// A call is a POST of JSON with its timeout in the query.
func TestCall(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Method, " ", r.URL, " ", r.Header.Get("Content-Type"), " ", r.Header.Get("Accept"), " ", string(body))
	})
	c := New(Options{})
	defer c.Close()
	got, err := c.Post(t.Context(), s.config(), call("x"))
	if want := "POST /hook?timeout=20s application/json application/json, */* x"; err != nil || string(got.Body) != want {
		t.Errorf("got %q, %v, want %q", got.Body, err, want)
	}
}

// Paths are cleaned, so that a webhook does not redirect. Templates for URLs often produce a
// doubled "/".
func TestPathIsClean(t *testing.T) {
	for path, want := range map[string]string{"": "/", "/": "/", "//hook": "/hook", "/a//b/../c/": "/a/c", "/a%20b": "/a%20b", "/a%2Fb": "/a/b"} {
		byURL := Config{URL: "https://h.example.com:9443" + path}
		if got, err := byURL.target(time.Second); err != nil || got != "https://h.example.com:9443"+want+"?timeout=1s" {
			t.Errorf("of a URL, %q is %q, %v, not %q", path, got, err, want)
		}
	}
	for path, want := range map[string]string{"": "/", "hook": "/hook", "//hook": "/hook", "/hook/": "/hook", "/a b": "/a%20b"} {
		byService := Config{Service: Service{Namespace: "ns", Name: "hooks", Path: path}}
		if got, err := byService.target(time.Second); err != nil || got != "https://hooks.ns.svc:443"+want+"?timeout=1s" {
			t.Errorf("of a service, %q is %q, %v, not %q", path, got, err, want)
		}
	}
}

// An error of Before has the form of a failed call.
func TestBefore(t *testing.T) {
	s := serve(t, echo)
	no := errors.New("not now")
	c := New(Options{Before: func(context.Context) error { return no }})
	defer c.Close()
	if _, err := c.Post(t.Context(), s.config(), call("x")); !errors.Is(err, no) || !strings.HasPrefix(err.Error(), "Post \"https://") || s.connections.Load() > 0 {
		t.Errorf("%v, after %d connections", err, s.connections.Load())
	}
}

// Peer depends on the address and on the certificate.
func TestPeer(t *testing.T) {
	first, second := serve(t, echo), serve(t, echo)
	c := New(Options{})
	defer c.Close()
	peer := func(s *server) string {
		reply, err := c.Post(t.Context(), s.config(), call("x"))
		if err != nil {
			t.Fatal(err)
		}
		return reply.Peer
	}
	was := peer(first)
	if again := peer(first); again != was {
		t.Errorf("the same server is %q and %q", was, again)
	}
	if other := peer(second); other == was {
		t.Errorf("another address is %q, too", other)
	}
	address := first.Listener.Addr().String()
	if !strings.HasPrefix(was, address+" ") || peerOf(address, first.Certificate()) != was {
		t.Errorf("the server at %s is %q", address, was)
	}
	if other := *first.Certificate(); peerOf(address, &x509.Certificate{Raw: append(other.Raw, 0)}) == was {
		t.Error("another certificate is the same peer")
	}
}

func peerOf(address string, c *x509.Certificate) string {
	return peer(address, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}})
}

// Consecutive calls share a connection, which Close closes.
func TestConnectionIsReused(t *testing.T) {
	s := serve(t, echo)
	c := New(Options{})
	for range 10 {
		// An equal Config in another value uses the same connection.
		if _, err := c.Post(t.Context(), s.config(), call("x")); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections for 10 calls", n)
	}
	c.Close()
	<-s.closed
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d connections are open after Close", n)
	}
	if _, err := c.Post(t.Context(), s.config(), call("x")); err != nil {
		t.Errorf("a call after Close: %v", err)
	}
	c.Close()
}

// The limit counts bytes, and an answer of exactly that size passes.
func TestReplyLimit(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
		w.(http.Flusher).Flush() // sends no Content-Length
	})
	c := New(Options{})
	defer c.Close()
	if got, err := c.Post(t.Context(), s.config(), call(strings.Repeat("x", 100))); err != nil || len(got.Body) != 100 {
		t.Errorf("100 bytes: got %d, %v", len(got.Body), err)
	}
	var large *TooLargeError
	if _, err := c.Post(t.Context(), s.config(), call(strings.Repeat("x", 101))); !errors.As(err, &large) {
		t.Errorf("101 bytes: got %v", err)
	}
}

// A webhook that hangs gets a limited number of calls; others are not affected.
func TestHangingWebhook(t *testing.T) {
	arrived := make(chan struct{})
	hanging := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // detects the end of the connection
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	other := serve(t, echo)
	c := New(Options{MaxCalls: 3})
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			if _, err := c.Post(ctx, hanging.config(), call("x")); !errors.Is(err, context.Canceled) {
				t.Errorf("a call that was given up: %v", err)
			}
		})
	}
	for range 3 {
		<-arrived
	}
	if _, err := c.Post(ctx, hanging.config(), call("x")); !status.Is(err, metav1.StatusReasonTooManyRequests) {
		t.Errorf("one call more: %v", err)
	}
	if _, err := c.Post(ctx, other.config(), call("x")); err != nil {
		t.Errorf("another webhook: %v", err)
	}
	cancel()
	calls.Wait()
}

// Connections to many webhooks are bounded.
func TestRoutesAreBounded(t *testing.T) {
	s := serve(t, echo)
	c := New(Options{})
	defer c.Close()
	const extra = 5
	for i := range maxRoutes + extra {
		config := s.config()
		config.URL += fmt.Sprint(i)
		if _, err := c.Post(t.Context(), config, call("x")); err != nil {
			t.Fatal(err)
		}
	}
	for range extra {
		<-s.closed
	}
	if n := c.routes.all.Len(); n != maxRoutes {
		t.Errorf("%d routes are kept", n)
	}
}

// If one address of a Service fails, another is tried.
func TestServiceAddresses(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	s := serve(t, echo)
	c := New(Options{Services: &egress.Dialer{Resolve: func(_ context.Context, of egress.Service) ([]string, error) {
		if want := (egress.Service{Namespace: "ns", Name: "hooks", Port: 443}); of != want {
			t.Errorf("asked for %v, want %v", of, want)
		}
		return []string{gone.Addr().String(), s.Listener.Addr().String()}, nil
	}}})
	defer c.Close()
	config := &Config{Service: Service{Namespace: "ns", Name: "hooks", Path: "/hook"}, CABundle: s.config().CABundle}
	_, err = c.Post(t.Context(), config, call("x"))
	// The server is reached, and the name of the Service is verified.
	if err == nil || !strings.Contains(err.Error(), "not hooks.ns.svc") {
		t.Errorf("got %v", err)
	}
	c = New(Options{})
	if _, err := c.Post(t.Context(), config, call("x")); err == nil || !strings.Contains(err.Error(), "services cannot be resolved") {
		t.Errorf("without a resolver: %v", err)
	}
}

// Each call chooses an address of a Service, and connections to it are reused. Without the gate WebhookRoundTripLoadBalancing, each
// connection chooses one.
func TestCallsAreBalanced(t *testing.T) {
	const calls = 60 // one server gets all of them once in 2^59 runs
	for _, on := range []bool{true, false} {
		authority := pkitest.Authority(t, "webhooks")
		leaf := pkitest.Sign(t, authority, x509.Certificate{DNSNames: []string{"hooks.ns.svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		var servers [2]*server
		var served [2]atomic.Int64
		var addresses []string
		for i := range servers {
			servers[i] = serveTLS(t, &tls.Config{Certificates: []tls.Certificate{*leaf.TLS()}}, func(w http.ResponseWriter, r *http.Request) {
				served[i].Add(1)
				if r.Host != "hooks.ns.svc:443" {
					t.Errorf("the host is %s", r.Host)
				}
				echo(w, r)
			})
			addresses = append(addresses, servers[i].Listener.Addr().String())
		}
		c := New(Options{
			Gates:    gate.With(map[gate.Name]bool{gate.WebhookRoundTripLoadBalancing: on}),
			Services: &egress.Dialer{Resolve: func(context.Context, egress.Service) ([]string, error) { return addresses, nil }},
		})
		config := &Config{Service: Service{Namespace: "ns", Name: "hooks"}, CABundle: authority.CertPEM()}
		for range calls {
			if _, err := c.Post(t.Context(), config, call("x")); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
		both := served[0].Load() > 0 && served[1].Load() > 0
		if connections := servers[0].connections.Load() + servers[1].connections.Load(); both != on || on && connections != 2 || !on && connections != 1 {
			t.Errorf("%t: %d and %d calls, %d connections", on, served[0].Load(), served[1].Load(), connections)
		}
	}
}

func BenchmarkPost(b *testing.B) {
	s := serve(b, echo)
	c := New(Options{})
	defer c.Close()
	config := s.config()
	for b.Loop() {
		if _, err := c.Post(b.Context(), config, call("x")); err != nil {
			b.Fatal(err)
		}
	}
}

// Calls are counted by code, method and host; a call without an answer has the code <error>.
func TestCallsAreCounted(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 5 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	c := New(Options{})
	defer c.Close()
	_, _ = c.Post(t.Context(), s.config(), call("ok"))
	_, _ = c.Post(t.Context(), s.config(), call("too much"))
	host := strings.TrimPrefix(s.URL, "https://")
	config := s.config()
	s.Close()
	_, _ = c.Post(t.Context(), config, call("ok"))
	for _, code := range []string{"200", "503", "<error>"} {
		var m dto.Metric
		if err := c.metrics.requests.WithLabelValues(code, "POST", host).Write(&m); err != nil || m.Counter.GetValue() != 1 {
			t.Errorf("%v calls with %s, want 1 (%v)", m.Counter.GetValue(), code, err)
		}
	}
	var m dto.Metric
	if err := c.metrics.durations.WithLabelValues("POST", host).(prometheus.Histogram).Write(&m); err != nil || m.Histogram.GetSampleCount() != 3 {
		t.Errorf("%d durations, want 3 (%v)", m.Histogram.GetSampleCount(), err)
	}
}
