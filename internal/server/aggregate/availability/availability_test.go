package availability

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate"
)

// A server is an API server at the other end of pipes.
type server struct {
	connections chan net.Conn
	closed      chan struct{}
	code        atomic.Int64 // of the answer; 0 never answers
	asked       atomic.Int64
	by          atomic.Value // user of the last request
}

func (s *server) Accept() (net.Conn, error) {
	select {
	case c := <-s.connections:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}
func (s *server) Close() error   { close(s.closed); return nil }
func (s *server) Addr() net.Addr { return &net.TCPAddr{} }

func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	if s.code.Load() < 0 {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	s.connections <- there
	return here, nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	s.by.Store(r.URL.Path + " " + r.Header.Get("X-Remote-User") + " " + r.Header.Get("X-Remote-Group"))
	code := s.code.Load()
	if code == 0 {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(int(code))
}

// in runs a test with the controller and a server at 10.1.0.1:8443.
func in(t *testing.T, test func(w *controllertest.World, s *server, others *aggregate.Aggregator)) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{connections: make(chan net.Conn), closed: make(chan struct{})}
		s.code.Store(200)
		own, err := pki.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		listening := http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{GetCertificate: own.GetCertificate}}
		done := make(chan error)
		go func() { done <- listening.ServeTLS(s, "", "") }()
		var others *aggregate.Aggregator
		w := controllertest.New(t, []controller.Descriptor{{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
			return New(others)(o, q)
		}}})
		others = aggregate.New(aggregate.Options{Cache: w.Cache, Kinds: resource.NewSet(builtin.Definitions()), Dialer: &egress.Dialer{
			Through: s.dial,
			Resolve: func(context.Context, egress.Service) ([]string, error) { return []string{"10.1.0.1:8443"}, nil },
		}})
		w.Start()
		w.Create("namespace dev")
		test(w, s, others)
		w.Stop()
		others.Close()
		_ = listening.Close()
		<-done
	})
}

const named = `spec: {group: dev, version: v1, groupPriorityMinimum: 5, versionPriority: 6, insecureSkipTLSVerify: true, service: {namespace: dev, name: api, port: 443}}`

// condition returns the condition of an APIService as text.
func condition(w *controllertest.World, name string) string {
	w.T.Helper()
	w.Wait()
	for _, one := range kind.List(w.Get("apiservice "+name), "status", "conditions") {
		c, _ := one.(object.Tree)
		return fmt.Sprintf("%v=%v %v: %v", c["type"], c["status"], c["reason"], c["message"])
	}
	return "nothing"
}

func check(w *controllertest.World, want string) {
	w.T.Helper()
	if got := condition(w, "v1.dev"); got != want {
		w.T.Errorf("the APIService says\n%s\nwant\n%s", got, want)
	}
}

// The condition names the missing object in Kubernetes' words, and changes when that object
// appears.
func TestConditions(t *testing.T) {
	in(t, func(w *controllertest.World, s *server, others *aggregate.Aggregator) {
		w.Store("apiservice v1.dev", named)
		check(w, `Available=False ServiceNotFound: service/api in "dev" is not present`)
		w.Store("service dev/api", `spec: {type: ClusterIP, ports: [{name: other, port: 80}]}`)
		check(w, `Available=False ServicePortError: service/api in "dev" is not listening on port 443`)
		w.Store("service dev/api", `spec: {type: ClusterIP, ports: [{name: https, port: 443}]}`)
		check(w, `Available=False EndpointsNotFound: cannot find endpointslices for service/api in "dev"`)
		const slice = `{metadata: {labels: {kubernetes.io/service-name: api}}, addressType: IPv4, ports: [{name: https, port: 8443}], endpoints: [%s]}`
		w.Store("endpointslice dev/api-1", fmt.Sprintf(slice, `{addresses: [10.1.0.1], conditions: {ready: false}}`))
		check(w, `Available=False MissingEndpoints: endpointslices for service/api in "dev" have no addresses with port name "https"`)
		if s.asked.Load() > 0 {
			t.Error("it was asked before it could be reached")
		}
		w.Store("endpointslice dev/api-1", fmt.Sprintf(slice, `{addresses: [10.1.0.1]}`))
		check(w, "Available=True Passed: all checks passed")
		if got := s.by.Load(); got != "/apis/dev/v1 system:kube-aggregator system:masters" {
			t.Error(got)
		}
		w.Delete("endpointslice dev/api-1", "")
		check(w, `Available=False EndpointsNotFound: cannot find endpointslices for service/api in "dev"`)
		w.Store("service dev/api", `spec: {type: ExternalName, externalName: example.com}`)
		check(w, "Available=True Passed: all checks passed")
		w.Edit("apiservice v1.dev", func(t object.Tree) {
			delete(kind.Tree(t, "spec"), "service")
			delete(kind.Tree(t, "spec"), "insecureSkipTLSVerify")
		})
		check(w, "Available=True Local: Local APIServices are always available")
	})
}

// A failing API server is probed again soon, then with growing pauses; an available one every 30
// seconds.
func TestProbes(t *testing.T) {
	in(t, func(w *controllertest.World, s *server, others *aggregate.Aggregator) {
		w.Store("service dev/api", `spec: {type: ExternalName, externalName: example.com}`)
		s.code.Store(403)
		w.Store("apiservice v1.dev", named)
		const url = "https://10.1.0.1:8443/apis/dev/v1"
		check(w, "Available=False FailedDiscoveryCheck: failing or missing response from "+url+": bad status from "+url+": 403")
		s.code.Store(200)
		w.Sleep(shortest)
		check(w, "Available=True Passed: all checks passed")
		for range 3 {
			before := s.asked.Load()
			w.Sleep(again)
			if s.asked.Load() == before {
				t.Error("it was not asked for half a minute")
			}
		}
		s.code.Store(302)
		w.Sleep(again)
		check(w, "Available=False FailedDiscoveryCheck: failing or missing response from "+url+": bad status from "+url+": 302")
		s.code.Store(0)
		w.Sleep(again)
		// net/http has two errors for this, by the order of its goroutines.
		got := condition(w, "v1.dev")
		timedOut := strings.Contains(got, "Client.Timeout exceeded while awaiting headers") || strings.Contains(got, "context deadline exceeded")
		if !timedOut || !strings.Contains(got, "failing or missing response from "+url) {
			t.Error(got)
		}
		s.code.Store(-1)
		w.Sleep(2 * again)
		check(w, "Available=False FailedDiscoveryCheck: failing or missing response from "+url+`: Get "`+url+`": connection refused`)
		before := s.asked.Load()
		s.code.Store(500)
		w.Sleep(10 * again)
		if n := (s.asked.Load() - before) / 5; n < 9 || n > 12 {
			t.Errorf("it was asked %d times in five minutes", n)
		}
		if got, want := metrics(t, others), "aggregator_unavailable_apiservice v1.dev 1, aggregator_unavailable_apiservice_total v1.dev FailedDiscoveryCheck 1"; got != want {
			t.Errorf("metrics: %s, want %s", got, want)
		}
		w.Delete("apiservice v1.dev", "")
		before = s.asked.Load()
		w.Sleep(2 * again)
		if s.asked.Load() != before {
			t.Error("the API server is called after deletion of its APIService")
		}
		if got := metrics(t, others); strings.Contains(got, "apiservice v1.dev") {
			t.Error("what is gone is still shown:", got)
		}
	})
}

// metrics returns the metrics of an Aggregator with their labels.
func metrics(t *testing.T, others *aggregate.Aggregator) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(others.Metrics())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		for _, m := range family.Metric {
			one := family.GetName()
			for _, l := range m.Label {
				one += " " + l.GetValue()
			}
			all = append(all, fmt.Sprint(one, " ", m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	return strings.Join(all, ", ")
}

// Without a remote APIService no goroutine and no timer waits.
func TestIdle(t *testing.T) {
	in(t, func(w *controllertest.World, s *server, _ *aggregate.Aggregator) {
		w.Store("apiservice v1.dev", `spec: {group: dev, version: v1, groupPriorityMinimum: 5, versionPriority: 6}`)
		check(w, "Available=True Local: Local APIServices are always available")
		w.Store("service dev/api", `spec: {type: ClusterIP, ports: [{name: https, port: 443}]}`)
		before := w.Get("apiservice v1.dev")
		w.Sleep(time.Hour)
		if !object.Equal(before, w.Get("apiservice v1.dev")) || s.asked.Load() > 0 {
			t.Error("something was done")
		}
	})
}
