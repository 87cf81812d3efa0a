package app

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/network/pki"
)

// A fakeServer is an API server behind an App, for the version v1 of the group flowers.dev.
type fakeServer struct {
	*httptest.Server
	t *testing.T
	// answers handles requests other than those for discovery.
	answers atomic.Pointer[http.HandlerFunc]
	openAPI atomic.Value // a string: its OpenAPI v2, if any
	app     *App
	client  *http.Client // of the administrator
}

// flowers is the path of the version.
const flowers = "/apis/flowers.dev/v1"

// behind starts an App, with an available fakeServer behind it.
func behind(t *testing.T, o Options, prepare ...func(*httptest.Server)) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t}
	f.Server = httptest.NewUnstartedServer(f)
	own := certificateFor(t, "flowers.default.svc")
	f.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{own}}
	f.EnableHTTP2 = true
	f.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	for _, do := range prepare {
		do(f.Server)
	}
	f.StartTLS()
	t.Cleanup(f.Close)
	f.answer(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s", r.Method, r.URL.RequestURI()) })
	if !o.Authentication.FrontProxy.own {
		o.Authentication.FrontProxy = o.Authentication.FrontProxy.OrOwn()
	}
	f.app = start(t, o)
	t.Cleanup(func() { stop(t, f.app) })
	f.client = client(t, f.app, admin(t, f.app))
	_, port, _ := net.SplitHostPort(f.Listener.Addr().String())
	f.must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"flowers"},"spec":{"type":"ExternalName","externalName":"localhost"}}`, 201)
	ca, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}))
	f.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(`{"metadata":{"name":"v1.flowers.dev"},"spec":{
		"group":"flowers.dev","version":"v1","groupPriorityMinimum":1000,"versionPriority":15,"caBundle":%s,"service":{"namespace":"default","name":"flowers","port":%s}}}`, ca, port), 201)
	f.available()
	return f
}

// available waits until requests reach the server.
func (f *fakeServer) available() {
	f.t.Helper()
	for {
		code, body := ask(f.t, f.client, "GET", f.app.URL()+flowers+"/ready", "", "")
		if code == http.StatusOK {
			return
		}
		if code != http.StatusServiceUnavailable {
			f.t.Fatal(code, body)
		}
		if f.t.Context().Err() != nil {
			f.t.FailNow()
		}
	}
}

// must sends a request of the administrator, and requires a code.
func (f *fakeServer) must(method, path, body string, want int) string {
	f.t.Helper()
	code, answer := ask(f.t, f.client, method, f.app.URL()+path, "", body)
	if code != want {
		f.t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

// answer sets the handler of later requests.
func (f *fakeServer) answer(h http.HandlerFunc) { f.answers.Store(&h) }

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case flowers:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"flowers.dev/v1","resources":[
			{"name":"roses","singularName":"rose","namespaced":true,"kind":"Rose","verbs":["get","create"]}]}`) // without the verbs that a controller of the App needs
	case flowers + "/ready":
		fmt.Fprint(w, "ready")
	case "/openapi/v2":
		if said, ok := f.openAPI.Load().(string); ok {
			fmt.Fprint(w, said)
			return
		}
		http.NotFound(w, r)
	case "/apis", "/openapi/v3": // the App fetches them in the background
		http.NotFound(w, r)
	default:
		(*f.answers.Load())(w, r)
	}
}

// identityOf formats the identity headers of a request, one per line.
func identityOf(r *http.Request) string {
	lines := []string{"certificate: none"}
	if len(r.TLS.PeerCertificates) > 0 {
		lines[0] = "certificate: " + r.TLS.PeerCertificates[0].Subject.CommonName
	}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "Impersonate-") || name == "Authorization" || strings.HasPrefix(name, "X-Other-") {
			lines = append(lines, name+": "+strings.Join(values, ", "))
		}
	}
	sort.Strings(lines[1:])
	return strings.Join(lines, "\n")
}

// A Backend receives the request of the client with the user of the client.
func TestForwarded(t *testing.T) {
	f := behind(t, Options{})
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Kept", "yes")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s\n%s", r.Method, r.URL.RequestURI(), r.Proto, identityOf(r))
	})
	got := f.must("DELETE", flowers+"/namespaces/default/roses/a?b=2&a=1", "", http.StatusTeapot)
	for _, want := range []string{
		"DELETE /apis/flowers.dev/v1/namespaces/default/roses/a?a=1&b=2 HTTP/2.0", "certificate: front-proxy-client",
		"X-Remote-Group: system:masters, system:authenticated", "X-Remote-User: kubernetes-admin",
		"X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id: X509SHA256=",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for _, path := range []string{"/apis/flowers.dev/v2/roses", "/apis/flowers.dev/v1x", "/apis/flowers.devs/v1/roses"} {
		f.must("GET", path, "", http.StatusNotFound)
	}
}

// An APIService takes effect before the response to its write.
func TestAPIServicesInForce(t *testing.T) {
	f := behind(t, Options{})
	const service = "/apis/apiregistration.k8s.io/v1/apiservices/v1.flowers.dev"
	says := func(want string) {
		t.Helper()
		code, body := ask(t, f.client, "GET", f.app.URL()+flowers+"/roses", "", "")
		if got := fmt.Sprint(code, " ", body); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	unavailable := `{"status":{"conditions":[{"type":"Available","status":"False","reason":"Test","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
	f.must("PATCH", service+"/status", unavailable, http.StatusOK)
	says("503 service unavailable\n")
	f.must("DELETE", service, "", http.StatusOK)
	says("404 404 page not found\n")
}

// An APIService with a Service takes precedence over a definition of the same version. The kinds of
// the definition are back after its deletion.
func TestAPIServiceBeforeDefinition(t *testing.T) {
	f := behind(t, Options{})
	f.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"roses.flowers.dev"},"spec":{"group":"flowers.dev","scope":"Namespaced",
		"names":{"plural":"roses","kind":"Rose"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
		{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, http.StatusCreated)
	if got := f.must("GET", flowers+"/roses", "", http.StatusOK); got != "GET "+flowers+"/roses" {
		t.Error(got)
	}
	if got := f.must("GET", "/apis/flowers.dev/v2/roses", "", http.StatusOK); !strings.Contains(got, `"kind":"RoseList"`) {
		t.Error(got)
	}
	const service = "/apis/apiregistration.k8s.io/v1/apiservices/v1.flowers.dev"
	if got := f.must("GET", service, "", http.StatusOK); !strings.Contains(got, `"reason":"Passed"`) {
		t.Error(got)
	}
	f.must("DELETE", service, "", http.StatusOK)
	if got := f.must("GET", flowers+"/roses", "", http.StatusOK); !strings.Contains(got, `"kind":"RoseList"`) {
		t.Error(got)
	}
	if err := f.app.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.must("GET", service, "", http.StatusOK); !strings.Contains(got, `"reason":"Local"`) {
		t.Error(got)
	}
}

// The proxy client certificate comes from files, and is reloaded when they change.
func TestProxyClientCertificateFiles(t *testing.T) {
	dir := t.TempDir()
	o := Options{}
	proxy := &o.Authentication.FrontProxy
	*proxy = proxy.OrOwn()
	proxy.CertFile, proxy.KeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	put := func(name string) {
		t.Helper()
		pair := authority(t).Admin()
		if name != "" {
			pair = clientOf(t, name)
		}
		write(t, proxy.CertFile, pair.CertPEM())
		write(t, proxy.KeyFile, pair.KeyPEM())
	}
	put("")
	f := behind(t, o)
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	})
	if got := f.must("GET", flowers+"/roses", "", http.StatusOK); got != "kubernetes-admin" {
		t.Errorf("the certificate is of %s", got)
	}
	put("another-proxy")
	for got := ""; got != "another-proxy"; { // The files are checked once a second.
		got = f.must("GET", flowers+"/roses", "", http.StatusOK)
	}
}

// clientOf returns a client certificate for a name.
func clientOf(t *testing.T, name string) *pki.Pair {
	t.Helper()
	dir := t.TempDir()
	if _, err := pki.Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	pair, err := pki.SignClient(dir, name, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// A server without OpenAPI v3 has it here, converted from v2: kubectl explain reads only v3.
func TestOpenAPIOfAnOldServer(t *testing.T) {
	f := behind(t, Options{})
	f.openAPI.Store(`{"swagger":"2.0","info":{"title":"Flowers","version":"1"},"paths":{
		"/apis/flowers.dev/v1/roses":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/dev.flowers.Rose"}}}}}},
		"definitions":{"dev.flowers.Rose":{"type":"object","properties":{"color":{"type":"string"}}}}}`)
	var list struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal([]byte(f.must("GET", "/openapi/v3", "", http.StatusOK)), &list); err != nil {
		t.Fatal(err)
	}
	at := list.Paths[flowers[1:]].ServerRelativeURL
	if !strings.HasPrefix(at, "/openapi/v3"+flowers+"?hash=") {
		t.Fatalf("the document is at %q", at)
	}
	if doc := f.must("GET", at, "", http.StatusOK); !strings.Contains(doc, `"components":{"schemas":{"dev.flowers.Rose":`) {
		t.Error(doc)
	}
}
