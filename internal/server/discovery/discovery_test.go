package discovery

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/openapi/openapitest"
)

// newHandler returns a Handler for openapitest's Definitions, and their Catalog.
func newHandler(t testing.TB, o Options) (*Handler, *resource.Catalog) {
	c := openapitest.Catalog(t)
	o.ServerAddress = "192.0.2.2:6443"
	return New(c, o), c
}

func TestDocumentsAreKubernetes(t *testing.T) {
	h, _ := newHandler(t, Options{})
	for _, test := range []struct{ path, want string }{
		{"/api", `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.2:6443"}]}`},
		{"/apis", `{"kind":"APIGroupList","apiVersion":"v1","groups":[` +
			`{"name":"apiextensions.k8s.io","versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}},` +
			`{"name":"coordination.k8s.io","versions":[{"groupVersion":"coordination.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"coordination.k8s.io/v1","version":"v1"}},` +
			`{"name":"disc.anykind.dev","versions":[{"groupVersion":"disc.anykind.dev/v1","version":"v1"},{"groupVersion":"disc.anykind.dev/v1beta1","version":"v1beta1"}],` +
			`"preferredVersion":{"groupVersion":"disc.anykind.dev/v1","version":"v1"}}]}`},
		{"/apis/disc.anykind.dev", `{"kind":"APIGroup","apiVersion":"v1","name":"disc.anykind.dev","versions":[{"groupVersion":"disc.anykind.dev/v1","version":"v1"},` +
			`{"groupVersion":"disc.anykind.dev/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"disc.anykind.dev/v1","version":"v1"}}`},
		{"/api/v1", `{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
			`{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="},` +
			`{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["create","delete","get","list","patch","update","watch"],"shortNames":["ns"],"storageVersionHash":"Q3oi5N2YM8M="},` +
			`{"name":"namespaces/finalize","singularName":"","namespaced":false,"kind":"Namespace","verbs":["update"]},` +
			`{"name":"namespaces/status","singularName":"","namespaced":false,"kind":"Namespace","verbs":["get","patch","update"]}]}`},
		{"/apis/coordination.k8s.io/v1", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"coordination.k8s.io/v1","resources":[` +
			`{"name":"leases","singularName":"lease","namespaced":true,"kind":"Lease","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":"gqkMMb/YqFM="}]}`},
		{"/apis/disc.anykind.dev/v1", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"disc.anykind.dev/v1","resources":[` +
			`{"name":"kites","singularName":"kite","namespaced":true,"kind":"Kite","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["ki","kt"],"categories":["all","toys"],"storageVersionHash":"bdl9YNDH0ik="},` +
			`{"name":"kites/status","singularName":"","namespaced":true,"kind":"Kite","verbs":["get","patch","update"]},` +
			`{"name":"kites/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]},` +
			`{"name":"skies","singularName":"sky","namespaced":false,"kind":"Sky","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"storageVersionHash":"Cf5s9gu2e9k="}]}`},
		{"/apis/disc.anykind.dev/v1beta1", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"disc.anykind.dev/v1beta1","resources":[` +
			`{"name":"kites","singularName":"kite","namespaced":true,"kind":"Kite","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["ki","kt"],"categories":["all","toys"],"storageVersionHash":"bdl9YNDH0ik="}]}`},
	} {
		for _, path := range []string{test.path, test.path + "/"} {
			w := ask(h, "GET", path)
			if got := strings.TrimSuffix(w.Body.String(), "\n"); got != test.want {
				t.Errorf("%s:\n got %s\nwant %s", path, got, test.want)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("%s: Content-Type %q", path, got)
			}
		}
	}
}

// Clients that take the first group with a resource depend on this order. /apis is sorted by the
// name of an APIService (VERSION.GROUP), aggregated discovery by the name of the group.
func TestOrderOfGroups(t *testing.T) {
	beta := strings.NewReplacer("disc.anykind.dev", "a.anykind.dev", "name: v1\n", "name: v1beta1\n")
	var c resource.Catalog
	c.Swap(resource.NewSet(append(nativeDefinitions(t), custom(t, skies), custom(t, beta.Replace(skies)))))
	h := New(&c, Options{})
	for accept, want := range map[string]string{
		"":               "apiextensions.k8s.io coordination.k8s.io disc.anykind.dev a.anykind.dev",
		acceptAggregated: "apiextensions.k8s.io coordination.k8s.io a.anykind.dev disc.anykind.dev",
	} {
		var groups []string
		for _, m := range regexp.MustCompile(`"name":"([^"]*\.[^"]*)"`).FindAllStringSubmatch(ask(h, "GET", "/apis", accept).Body.String(), -1) {
			groups = append(groups, m[1])
		}
		if got := strings.Join(groups, " "); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
	}
}

func TestStorageVersionIsSecretWhenNotServed(t *testing.T) {
	var c resource.Catalog
	c.Swap(resource.NewSet([]*resource.Definition{custom(t, strings.Replace(kites, "served: true\n    storage: true", "served: false\n    storage: true", 1))}))
	w := ask(New(&c, Options{}), "GET", "/apis/disc.anykind.dev/v1beta1")
	if body := w.Body.String(); !strings.Contains(body, `"kites"`) || strings.Contains(body, "storageVersionHash") {
		t.Errorf("got %s", body)
	}
}

func TestTerminatingResourceTakesNothing(t *testing.T) {
	d := custom(t, skies)
	d.Terminating = true
	var c resource.Catalog
	c.Swap(resource.NewSet([]*resource.Definition{d}))
	h := New(&c, Options{})
	const want = `"verbs":["delete","deletecollection","get","list","watch"]`
	for _, path := range []string{"/apis/disc.anykind.dev/v1", "/apis"} {
		if body := ask(h, "GET", path, acceptAggregated).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: %s", path, body)
		}
	}
}

func TestFormats(t *testing.T) {
	h, _ := newHandler(t, Options{})
	yaml := "apiVersion: v1\nkind: APIGroup\nname: coordination.k8s.io\npreferredVersion:\n  groupVersion: coordination.k8s.io/v1\n  version: v1\n" +
		"versions:\n- groupVersion: coordination.k8s.io/v1\n  version: v1\n"
	if got := ask(h, "GET", "/apis/coordination.k8s.io", "Accept: application/yaml").Body.String(); got != yaml {
		t.Errorf("YAML:\n%s", got)
	}
	pretty := "{\n  \"kind\": \"APIVersions\",\n  \"versions\": [\n    \"v1\"\n  ],"
	if got := ask(h, "GET", "/api", "User-Agent: curl/8").Body.String(); !strings.HasPrefix(got, pretty) {
		t.Errorf("for curl:\n%s", got)
	}
}

func TestRefusals(t *testing.T) {
	h, _ := newHandler(t, Options{})
	const notFound = "404 page not found\n"
	const missing = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}` + "\n"
	const method = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server does not allow this method on the requested resource","reason":"MethodNotAllowed","details":{},"code":405}` + "\n"
	for _, test := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"GET", "/apis/nope", 404, notFound},
		{"GET", "/apis/nope/v1", 404, notFound},
		{"GET", "/apis/disc.anykind.dev/v9", 404, notFound},
		{"GET", "/apis/coordination.k8s.io/v9", 404, missing},
		{"GET", "/api/v2", 404, missing},
		{"POST", "/api", 405, method},
		{"HEAD", "/api/v1", 405, method},
		{"POST", "/apis/coordination.k8s.io/v1", 405, method},
	} {
		w := ask(h, test.method, test.path)
		if w.Code != test.code || w.Body.String() != test.want {
			t.Errorf("%s %s: %d %s", test.method, test.path, w.Code, w.Body)
		}
	}
	w := ask(h, "GET", "/apis", "Accept: text/html")
	if want := "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"; w.Code != 406 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("Accept text/html: %d %s", w.Code, w.Body)
	}
}

// The pages of built-in versions have a route each, which matches full media types; the pages of
// groups and of custom resources have none.
func TestAcceptOfRoutes(t *testing.T) {
	h, _ := newHandler(t, Options{})
	const want = `"message":"406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"`
	for _, path := range []string{"/api", "/api/", "/api/v1", "/apis/coordination.k8s.io/v1"} {
		for _, accept := range []string{"application/*", "*", "text/html"} {
			if w := ask(h, "GET", path, "Accept: "+accept); w.Code != 406 || !strings.Contains(strings.ReplaceAll(w.Body.String(), `": "`, `":"`), want) {
				t.Errorf("%s of %s: %d %s", accept, path, w.Code, w.Body)
			}
		}
		if w := ask(h, "GET", path, "Accept: text/html, */*"); w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/apis", "/apis/coordination.k8s.io", "/apis/disc.anykind.dev", "/apis/disc.anykind.dev/v1"} {
		if w := ask(h, "GET", path, "Accept: application/*"); w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// With CBOR enabled, the page of a custom version is still not served as CBOR.
func TestCBOR(t *testing.T) {
	h, _ := newHandler(t, Options{})
	for path, want := range map[string]string{
		"/apis":                        "application/cbor",
		"/apis/disc.anykind.dev":       "application/cbor",
		"/apis/coordination.k8s.io/v1": "application/cbor",
		"/apis/disc.anykind.dev/v1":    "application/json",
	} {
		r := httptest.NewRequestWithContext(codec.Offer{CBOR: true}.Context(t.Context()), "GET", path, nil)
		r.Header.Set("Accept", "application/cbor,application/json;q=0.9")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); w.Code != 200 || got != want {
			t.Errorf("%s: %d %s, want %s", path, w.Code, got, want)
		}
	}
}

func TestHandles(t *testing.T) {
	h, _ := newHandler(t, Options{})
	for _, path := range []string{"/", "/api", "/api/v1", "/api/v1/", "/apis", "/apis/g", "/apis/g/v1", "/apis/g/v1/"} {
		if !h.Handles(path) {
			t.Errorf("%s is not handled", path)
		}
	}
	for _, path := range []string{"", "/healthz", "/api/v1/namespaces", "/apis/g/v1/things", "/apis/g//things", "/apis//v1", "/openapi", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/apisx"} {
		if h.Handles(path) {
			t.Errorf("%s is handled", path)
		}
	}
}

func TestIndexListsWhatIsServed(t *testing.T) {
	h, _ := newHandler(t, Options{Paths: []string{"/version", "/livez"}})
	const want = `{
  "paths": [
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/apis/apiextensions.k8s.io",
    "/apis/apiextensions.k8s.io/v1",
    "/apis/coordination.k8s.io",
    "/apis/coordination.k8s.io/v1",
    "/apis/disc.anykind.dev",
    "/apis/disc.anykind.dev/v1",
    "/apis/disc.anykind.dev/v1beta1",
    "/livez",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/version"
  ]
}`
	if got := ask(h, "GET", "/").Body.String(); got != want {
		t.Errorf("got %s", got)
	}
}

func TestUnknownPathAsksForNews(t *testing.T) {
	asked := 0
	c := &resource.Catalog{}
	c.Swap(resource.NewSet(nil))
	h := New(c, Options{Refresh: func(context.Context) error {
		asked++
		c.Swap(resource.NewSet([]*resource.Definition{custom(t, kites)}))
		return nil
	}})
	for _, path := range []string{"/apis", "/apis/disc.anykind.dev/v1", "/apis/disc.anykind.dev"} {
		if w := ask(h, "GET", path); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}

func TestRefreshFails(t *testing.T) {
	h := New(&resource.Catalog{}, Options{Refresh: func(context.Context) error { return context.DeadlineExceeded }})
	if w := ask(h, "GET", "/apis/nope"); w.Code != http.StatusGatewayTimeout {
		t.Errorf("got %d, want 504: nothing is known of the group", w.Code)
	}
}

func TestServerAddressIsWhereTheRequestWent(t *testing.T) {
	c := &resource.Catalog{}
	c.Swap(resource.NewSet(nativeDefinitions(t)))
	server := httptest.NewServer(New(c, Options{}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/api")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := make([]byte, 1000)
	n, _ := resp.Body.Read(body)
	if want := `"serverAddress":"` + server.Listener.Addr().String() + `"`; !strings.Contains(string(body[:n]), want) {
		t.Errorf("got %s, want %s", body[:n], want)
	}
}

func TestEmptyCatalog(t *testing.T) {
	h := New(&resource.Catalog{}, Options{})
	for path, want := range map[string]string{
		"/api":  `"versions":[]`,
		"/apis": `"groups":[]`,
	} {
		if got := ask(h, "GET", path).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// Without the gate, only custom resources have a hash of their storage version.
func TestStorageVersionHashWithoutItsGate(t *testing.T) {
	h, _ := newHandler(t, Options{Gates: gate.With(map[gate.Name]bool{gate.StorageVersionHash: false})})
	for path, want := range map[string]bool{"/api/v1": false, "/apis/disc.anykind.dev/v1": true} {
		body := ask(h, "GET", path).Body.String()
		if got := strings.Contains(body, "storageVersionHash"); got != want || !strings.Contains(body, "APIResourceList") {
			t.Errorf("%s: %s", path, body)
		}
	}
}
