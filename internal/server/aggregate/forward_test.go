package aggregate

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/request"
)

// A wire is a listener with connections in memory, so that the test controls time.
type wire struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}
func (w *wire) Close() error   { w.once.Do(func() { close(w.closed) }); return nil }
func (w *wire) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (w *wire) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case w.conns <- theirs:
		return ours, nil
	case <-w.closed:
		return nil, errors.New("connection refused")
	}
}

// over runs a test with an Aggregator in front of a server, in a synctest bubble.
func over(t *testing.T, backend http.HandlerFunc, test func(t *testing.T, s *store, a *Aggregator, w *wire)) {
	synctest.Test(t, func(t *testing.T) {
		own, err := pki.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &wire{conns: make(chan net.Conn), closed: make(chan struct{})}
		there := http.Server{Handler: backend, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{GetCertificate: own.GetCertificate}}
		done := make(chan error)
		go func() { done <- there.ServeTLS(w, "", "") }()
		s := newStore(t)
		a := New(Options{Cache: s.cache, Kinds: s.kinds, Dialer: &egress.Dialer{
			Through: w.dial,
			Resolve: func(context.Context, egress.Service) ([]string, error) { return []string{"10.1.0.1:8443"}, nil },
		}})
		s.write("v1.a.dev", spec("a.dev/v1", 10, 5, service)+well)
		test(t, s, a, w)
		a.Close()
		there.Close()
		<-done
		time.Sleep(time.Minute) // remaining connections end
	})
}

// asked returns the answer to a user's request for a path.
func asked(a *Aggregator, path string, change ...func(*http.Request)) string {
	r := httptest.NewRequest("GET", path, nil)
	q := &request.Request{Info: request.Parse(r), User: &request.User{Name: "jane"}}
	r = r.WithContext(request.With(r.Context(), q))
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	a.Find(r).ServeHTTP(w, r)
	return http.StatusText(w.Code) + ": " + strings.TrimSpace(w.Body.String())
}

// Requests that cannot be forwarded are answered as text, in Kubernetes' words.
func TestUnanswered(t *testing.T) {
	hanging := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	over(t, hanging, func(t *testing.T, s *store, a *Aggregator, w *wire) {
		began := time.Now()
		got := asked(a, "/apis/a.dev/v1")
		if want := "Service Unavailable: error trying to reach service: context deadline exceeded"; got != want || time.Since(began) != discoveryTime {
			t.Errorf("discovery after %v: %s, want %s", time.Since(began), got, want)
		}
		s.write("v1.a.dev", spec("a.dev/v1", 10, 5, service))
		if got, want := asked(a, "/apis/a.dev/v1/roses"), "Service Unavailable: service unavailable"; got != want {
			t.Errorf("what is not available: %s, want %s", got, want)
		}
		s.write("v1.a.dev", spec("a.dev/v1", 10, 5, `,"service":{"namespace":"dev","name":"api","port":443},"caBundle":"eA=="`)+well)
		if got, want := asked(a, "/apis/a.dev/v1/roses"), "Internal Server Error: unable to load root certificates: unable to parse bytes as PEM block"; got != want {
			t.Errorf("authorities that are none: %s, want %s", got, want)
		}
		s.write("v1.a.dev", spec("a.dev/v1", 10, 5, `,"service":{"namespace":"dev","name":"api","port":443}`)+well)
		if got, want := asked(a, "/apis/a.dev/v1/roses"), "Service Unavailable: error trying to reach service: tls: failed to verify certificate: x509: "; !strings.HasPrefix(got, want) {
			t.Errorf("a certificate of an unknown CA: %s, want %s", got, want)
		}
		w.Close()
		s.write("v1.a.dev", spec("a.dev/v1", 10, 5, service)+well)
		a.Close()
		if got, want := asked(a, "/apis/a.dev/v1/roses"), "Service Unavailable: error trying to reach service: connection refused"; got != want {
			t.Errorf("connection refused: %s, want %s", got, want)
		}
		upgrade := func(r *http.Request) {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "SPDY/3.1")
		}
		if got, want := asked(a, "/apis/a.dev/v1/roses/a/exec", upgrade), "Service Unavailable: error dialing backend: connection refused"; got != want {
			t.Errorf("connection refused for an upgrade: %s, want %s", got, want)
		}
		unknown := func(r *http.Request) { request.From(r.Context()).User = nil }
		if got, want := asked(a, "/apis/a.dev/v1/roses", unknown), "Internal Server Error: missing user"; got != want {
			t.Errorf("no user: %s, want %s", got, want)
		}
	})
}

// BenchmarkForwarded measures forwarding a request and its answer.
func BenchmarkForwarded(b *testing.B) {
	there := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1700))
	}))
	there.EnableHTTP2 = true
	there.StartTLS()
	defer there.Close()
	s := newStore(b)
	a := New(Options{Cache: s.cache, Kinds: s.kinds, Dialer: &egress.Dialer{
		Resolve: func(context.Context, egress.Service) ([]string, error) {
			return []string{there.Listener.Addr().String()}, nil
		},
	}})
	defer a.Close()
	s.write("v1.a.dev", spec("a.dev/v1", 10, 5, service)+well)
	b.ReportAllocs()
	for b.Loop() {
		if got := asked(a, "/apis/a.dev/v1/namespaces/default/roses/a"); !strings.HasPrefix(got, "OK: ") {
			b.Fatal(got)
		}
	}
}
