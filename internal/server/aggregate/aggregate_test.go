package aggregate

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A store holds APIServices.
type store struct {
	t       testing.TB
	backend kv.Backend
	cache   *watchcache.Cache
	kinds   *resource.Set
}

func newStore(t testing.TB) *store {
	s := &store{t: t, backend: memkv.New(memkv.Options{})}
	s.cache = watchcache.New(s.backend, watchcache.Options{})
	s.kinds = resource.NewSet([]*resource.Definition{resource.New(resource.Definition{
		Group: "apiregistration.k8s.io", Plural: "apiservices", Kind: "APIService", StoragePrefix: "/registry/apiregistration.k8s.io/apiservices/",
		Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true}},
	})})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = s.backend.Close()
	})
	return s
}

// write stores an APIService, or deletes it if spec is empty.
func (s *store) write(name, spec string) {
	s.t.Helper()
	w := kv.Write{Key: "/registry/apiregistration.k8s.io/apiservices/" + name}
	if record, err := s.backend.Get(s.t.Context(), w.Key, kv.Latest); err == nil {
		w.Expect = record.Revision
	}
	if spec != "" {
		w.Value = fmt.Appendf(nil, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":%q,"uid":"u"},%s}`, name, spec)
	}
	revision, err := s.backend.Commit(s.t.Context(), w)
	if err == nil {
		err = s.cache.Wait(s.t.Context(), revision)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// spec returns the spec of an APIService; more is appended to it.
func spec(gv string, group, version int, more string) string {
	g, v, _ := strings.Cut(gv, "/")
	return fmt.Sprintf(`"spec":{"group":%q,"version":%q,"groupPriorityMinimum":%d,"versionPriority":%d%s}`, g, v, group, version, more)
}

const (
	service = `,"service":{"namespace":"dev","name":"api","port":443},"insecureSkipTLSVerify":true`
	well    = `,"status":{"conditions":[{"type":"Available","status":"True"}]}`
)

// Discovery is ordered by priorities, then by names.
func TestServices(t *testing.T) {
	s := newStore(t)
	a := New(Options{Cache: s.cache, Kinds: s.kinds})
	shown := func() string {
		var all []string
		for _, g := range a.Services(t.Context()).Groups() {
			one := g.Name + ":"
			for _, v := range g.Versions {
				one += " " + v.Version
				if v.Backend != nil {
					one += "@" + v.Backend.Host()
				}
				if v.Available {
					one += "+"
				}
			}
			all = append(all, one)
		}
		return strings.Join(all, "; ")
	}
	expect := func(want string, remote bool) {
		t.Helper()
		if got := shown(); got != want || a.Services(t.Context()).Remote() != remote {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if none := (&Services{}); len(none.Groups()) > 0 || none.Group("a.dev") != nil || none.Lookup("a.dev", "v1") != nil || none.Remote() {
		t.Error("the zero value is something")
	}
	expect("", false)
	s.write("v1.", spec("/v1", 18000, 1, "")+well)
	s.write("v1.b.dev", spec("b.dev/v1", 10, 5, ""))
	s.write("v1.a.dev", spec("a.dev/v1", 10, 5, ""))
	expect(": v1+; a.dev: v1; b.dev: v1", false)
	s.write("v2.b.dev", spec("b.dev/v2", 20, 5, service)+well)
	s.write("v2beta1.b.dev", spec("b.dev/v2beta1", 5, 5, ""))
	s.write("v3alpha1.b.dev", spec("b.dev/v3alpha1", 5, 6, service))
	expect(": v1+; b.dev: v3alpha1@api.dev.svc v2@api.dev.svc+ v1 v2beta1; a.dev: v1", true)
	before := a.Services(t.Context())
	if before.Lookup("b.dev", "v1") != nil || before.Lookup("b.dev", "v2") == nil || !before.Group("b.dev").Remote() || before.Group("a.dev").Remote() || before.Group("c.dev").Remote() {
		t.Error("which of them are remote is wrong")
	}
	if a.Services(t.Context()) != before {
		t.Error("nothing has changed, but the Services")
	}
	s.write("v2.b.dev", "")
	s.write("v3alpha1.b.dev", `"spec":"nonsense"`)
	expect(": v1+; a.dev: v1; b.dev: v1 v2beta1", false)
}

// Find matches the paths of APIServices, and looks up unknown ones again.
func TestFind(t *testing.T) {
	s := newStore(t)
	catalog := &resource.Catalog{}
	catalog.Swap(s.kinds)
	a := New(Options{Cache: s.cache, Kinds: s.kinds, Catalog: catalog})
	found := func(path string) bool { return a.Find(httptest.NewRequest("GET", path, nil)) != nil }
	s.write("v1.a.dev", spec("a.dev/v1", 10, 5, service))
	for path, want := range map[string]bool{
		"/apis/a.dev/v1": true, "/apis/a.dev/v1/": true, "/apis/a.dev/v1/x": true, "/apis/a.dev/v1/namespaces/x/y/z/proxy/a": true,
		"/apis/a.dev": false, "/apis/a.dev/": false, "/apis/a.dev/v10": false, "/apis/a.dev/v2/x": false, "/apis/b.a.dev/v1": false, "/apis": false,
		"/apis/": false, "/apis//v1": false, "/apisx/a.dev/v1": false, "/api/v1": false, "/api": false, "/": false, "/healthz": false, "/openapi/v2": false,
	} {
		if found(path) != want {
			t.Errorf("%s is one of the backend: %t", path, !want)
		}
	}
	s.write("v1.", spec("/v1", 10, 5, service))
	for path, want := range map[string]bool{"/api": true, "/api/": true, "/api/v1/pods": true, "/apix": false} {
		if found(path) != want {
			t.Errorf("%s is one of the backend of the legacy group: %t", path, !want)
		}
	}
}

// A connection uses the current certificate, and versions of one Backend share it.
func TestCertificate(t *testing.T) {
	names := make(chan string, 1)
	there := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names <- fmt.Sprint(r.TLS.PeerCertificates[0].Subject.CommonName, " ", r.RemoteAddr)
	}))
	there.EnableHTTP2 = true
	there.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	there.StartTLS()
	defer there.Close()
	own, err := pki.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := own.FrontProxy()
	if err != nil {
		t.Fatal(err)
	}
	var now atomic.Pointer[tls.Certificate]
	s := newStore(t)
	a := New(Options{Cache: s.cache, Kinds: s.kinds, Certificate: now.Load, Dialer: &egress.Dialer{
		Resolve: func(context.Context, egress.Service) ([]string, error) {
			return []string{there.Listener.Addr().String()}, nil
		},
	}})
	defer a.Close()
	s.write("v1.a.dev", spec("a.dev/v1", 10, 5, service))
	s.write("v2.a.dev", spec("a.dev/v2", 10, 5, service))
	ask := func(version string) string {
		t.Helper()
		answer, err := a.Services(t.Context()).Lookup("a.dev", version).Backend.Get(t.Context(), "/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return <-names
	}
	now.Store(authority.RenewedClient("first").Get())
	first := ask("v1")
	s.write("v1.a.dev", spec("a.dev/v1", 11, 5, service)+well)
	if !strings.HasPrefix(first, "first ") || ask("v1") != first || ask("v2") != first {
		t.Errorf("%s: not one connection", first)
	}
	now.Store(authority.RenewedClient("second").Get())
	second := ask("v1")
	if !strings.HasPrefix(second, "second ") || ask("v2") != second {
		t.Errorf("%s after the certificate was renewed", second)
	}
	s.write("v1.a.dev", spec("a.dev/v1", 11, 5, `,"service":{"namespace":"dev","name":"other","port":443},"insecureSkipTLSVerify":true`))
	if other := ask("v1"); other == second {
		t.Error("another Service has the same connection")
	}
}

// BenchmarkLocal measures a request for a kind of this server, with other API servers and
// without.
func BenchmarkLocal(b *testing.B) {
	for name, remote := range map[string]bool{"alone": false, "with others": true} {
		b.Run(name, func(b *testing.B) {
			s := newStore(b)
			for i := range 50 {
				s.write(fmt.Sprintf("v1.g%d.dev", i), spec(fmt.Sprintf("g%d.dev/v1", i), 10, 5, "")+well)
			}
			if remote {
				s.write("v1.a.dev", spec("a.dev/v1", 10, 5, service)+well)
			}
			a := New(Options{Cache: s.cache, Kinds: s.kinds})
			r := httptest.NewRequest("GET", "/apis/g7.dev/v1/namespaces/default/things/a", nil)
			r = r.WithContext(request.With(r.Context(), &request.Request{}))
			b.ReportAllocs()
			for b.Loop() {
				if a.Find(r) != nil {
					b.Fatal("it is not one of this server")
				}
			}
		})
	}
}
