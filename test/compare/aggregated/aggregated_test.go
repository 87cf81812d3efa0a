// Package aggregated puts the same API server behind a kube-apiserver and behind anykind, and compares
// the requests that it gets, the responses to clients, and the conditions of its APIService.
package aggregated

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

const version = "/apis/flowers.dev/v1"

// behind responds with its request, or as the last part of the path selects.
func behind(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	switch _, last, _ := strings.Cut(r.URL.Path, "/roses/"); last {
	case "redirect":
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
	case "teapot":
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("X-Kept", "yes")
		w.WriteHeader(http.StatusTeapot)
	case "cut":
		w.Header().Set("Content-Length", "100")
		panic(http.ErrAbortHandler)
	case "unchanged":
		w.WriteHeader(http.StatusNotModified)
	default:
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %q\n", r.Method, r.URL.RequestURI(), r.Proto, body)
		r.Header.Del("Accept-Encoding") // kube-apiserver adds gzip if the client has none
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			fmt.Fprintf(w, "%s: %q\n", name, r.Header[name])
		}
	}
}

// chance matches values that differ between requests.
var chance = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|127\.0\.0\.1:[0-9]+|localhost:[0-9]+|\[::1\]:[0-9]+`)

// field returns a header field of a step.
func field(name, value string) wire.Field { return wire.Field{Name: name, Value: value} }

// requests are the requests to both.
var requests = []wire.Step{
	{Method: "GET", Path: version},
	{Method: "GET", Path: version + "/"},
	{Method: "GET", Path: version + "/roses?b=2&a=1&a=0"},
	{Method: "POST", Path: version + "/namespaces/default/roses", Body: []byte("{}"), Header: []wire.Field{field("Content-Type", "application/json")}},
	{Method: "DELETE", Path: version + "/namespaces/default/roses/a%2Fb"},
	{Method: "GET", Path: version + "/roses", Header: []wire.Field{
		field("X-Remote-User", "root"), field("X-Remote-Uid", "0"), field("X-Remote-Group", "system:masters"), field("X-Remote-Extra-A", "b"),
		field("X-Forwarded-For", "192.0.2.1"), field("X-Forwarded-Host", "example.com"), field("Cookie", "a=b"), field("X-Own", "c"),
	}},
	{Method: "GET", Path: version + "/roses", Header: []wire.Field{
		field("Impersonate-User", "jane"), field("Impersonate-Group", "system:masters"), field("Impersonate-Uid", "7"), field("Impersonate-Extra-Example.com%2fscopes", "x%y"),
	}},
	{Method: "GET", Path: version + "/roses", Header: []wire.Field{field("Impersonate-User", "jane")}},
	{Method: "GET", Path: version + "/roses/redirect"},
	{Method: "GET", Path: version + "/roses/teapot"},
	{Method: "GET", Path: version + "/roses/unchanged"},
	{Method: "GET", Path: version + "/roses", HTTP1: true, Header: []wire.Field{field("Connection", "Upgrade"), field("Upgrade", "SPDY/3.1")}},
	{Method: "GET", Path: version + "/roses/teapot", HTTP1: true, Header: []wire.Field{field("Connection", "Upgrade"), field("Upgrade", "SPDY/3.1")}},
	{Method: "GET", Path: "/apis/flowers.dev/v2/roses"},
	{Method: "PATCH", Path: version + "/roses/x", Body: []byte("{}"), Header: []wire.Field{field("Content-Type", "application/merge-patch+json")}},
}

// headers are the response headers to compare.
var headers = []string{"Content-Type", "Location", "X-Kept", "Access-Control-Allow-Origin", "Retry-After", "X-Content-Type-Options"}

func shown(a *wire.Answer) string {
	out := fmt.Sprintln(a.Code, a.Failed)
	for _, name := range headers {
		if values := a.Header[name]; len(values) > 0 {
			out += fmt.Sprintln(name, values)
		}
	}
	return chance.ReplaceAllString(out+string(a.Body), "*")
}

// A world is both servers, with one aggregated server each.
type world struct {
	t    *testing.T
	pair *servers.Pair
}

func (w *world) do(s wire.Step) (theirs, ours *wire.Answer) {
	return w.pair.Theirs.Do(w.t.Context(), s), w.pair.Ours.Do(w.t.Context(), s)
}

func (w *world) must(method, path, body string) {
	w.t.Helper()
	media := "application/json"
	if method == "PATCH" {
		media = "application/merge-patch+json"
	}
	theirs, ours := w.do(wire.Step{Method: method, Path: path, Body: []byte(body), Header: []wire.Field{field("Content-Type", media)}})
	for _, a := range []*wire.Answer{theirs, ours} {
		if a.Code/100 != 2 {
			w.t.Fatalf("%s %s: %d %s", method, path, a.Code, a.Body)
		}
	}
}

// condition returns the condition of the APIService at a server.
func condition(ctx context.Context, c *wire.Client) string {
	a := c.Do(ctx, wire.Step{Method: "GET", Path: service})
	var s struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	_ = json.Unmarshal(a.Body, &s) // other bodies leave it empty
	return chance.ReplaceAllString(fmt.Sprint(s.Status.Conditions), "*")
}

const (
	services = "/apis/apiregistration.k8s.io/v1/apiservices"
	service  = services + "/v1.flowers.dev"
)

// says waits until both servers have the same condition, and checks its reason.
func (w *world) says(reason string) {
	w.t.Helper()
	var theirs, ours string
	err := servers.Wait(w.t.Context(), func() bool {
		theirs, ours = condition(w.t.Context(), w.pair.Theirs), condition(w.t.Context(), w.pair.Ours)
		return theirs == ours && strings.Contains(theirs, reason)
	})
	if err != nil {
		w.t.Fatalf("want %s:\ntheirs %s\nours   %s", reason, theirs, ours)
	}
}

func TestAggregated(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	there := httptest.NewUnstartedServer(http.HandlerFunc(behind))
	there.EnableHTTP2 = true
	there.Config.ErrorLog = log.New(io.Discard, "", 0)
	there.StartTLS()
	defer there.Close()
	_, port, err := net.SplitHostPort(there.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	pair, err := servers.Start(ctx, servers.Options{Reference: *reference, Store: "memory", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Stop()
	w := &world{t, pair}
	t.Run("conditions", func(t *testing.T) { w.conditions(t, port) })
	t.Run("requests", func(t *testing.T) { w.requests(t) })
	t.Run("certificates", func(t *testing.T) { w.certificates(t, there) })
}

// conditions creates the Service piece by piece.
func (w *world) conditions(t *testing.T, port string) {
	w.t = t
	const at = "/api/v1/namespaces/default/services"
	w.must("POST", services, fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.flowers.dev"},"spec":{
		"group":"flowers.dev","version":"v1","groupPriorityMinimum":1000,"versionPriority":15,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"flowers","port":%s}}}`, port))
	w.says("ServiceNotFound")
	w.must("POST", at, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"flowers"},"spec":{"ports":[{"name":"https","port":1}]}}`)
	w.says("ServicePortError")
	w.must("PATCH", at+"/flowers", fmt.Sprintf(`{"spec":{"ports":[{"name":"https","port":%s}]}}`, port))
	w.says("EndpointsNotFound")
	const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	w.must("POST", slices, `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"flowers","labels":{"kubernetes.io/service-name":"flowers"}},
		"addressType":"IPv4","ports":[{"name":"https","port":1}],"endpoints":[{"addresses":["192.0.2.1"],"conditions":{"ready":false}}]}`)
	w.says("MissingEndpoints")
	w.must("DELETE", slices+"/flowers", "")
	w.must("DELETE", at+"/flowers", "")
	w.must("POST", at, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"flowers"},"spec":{"type":"ExternalName","externalName":"localhost"}}`)
	w.says("Passed")
}

// requests compares the forwarded requests and the responses.
func (w *world) requests(t *testing.T) {
	w.t = t
	for _, c := range []*wire.Client{w.pair.Theirs, w.pair.Ours} { // it takes effect a moment later
		if err := servers.Wait(t.Context(), func() bool { return c.Do(t.Context(), requests[0]).Code == 200 }); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range requests {
		theirs, ours := w.do(s)
		if got, want := shown(ours), shown(theirs); got != want {
			t.Errorf("%s\nours   %s\ntheirs %s", s, got, want)
		}
	}
}

// certificates compares the conditions for a server with the wrong certificate, and for one that is
// gone.
func (w *world) certificates(t *testing.T, there *httptest.Server) {
	w.t = t
	ca, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: there.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	w.must("PATCH", service, fmt.Sprintf(`{"spec":{"insecureSkipTLSVerify":false,"caBundle":%s}}`, ca))
	w.says("not flowers.default.svc")
	down := wire.Step{Method: "GET", Path: version + "/roses"}
	theirs, ours := w.do(down)
	if shown(theirs) != shown(ours) {
		t.Errorf("ours   %s\ntheirs %s", shown(ours), shown(theirs))
	}
	there.Close()
	w.must("PATCH", service, `{"spec":{"insecureSkipTLSVerify":true,"caBundle":null}}`)
	w.says("connection refused")
}
