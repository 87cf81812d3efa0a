package traces

import (
	"crypto/md5"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var (
	reference = flag.Bool("reference", false, "run kube-apiserver with etcd instead of anykind in TestSpans")
	update    = flag.Bool("update", false, "write the spans of -reference to testdata")
)

// configured writes a TracingConfiguration, and returns the flag for it.
func configured(t *testing.T, lines ...string) string {
	t.Helper()
	// The default of OpenTelemetry is five seconds.
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--tracing-config-file=" + file
}

// start starts anykind with additional flags.
func start(t *testing.T, flags ...string) (*process.Server, process.API) {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	s, err := process.Start(t.Context(), anykind, t.TempDir(), "", append(flags, "--in-memory")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s, api(t, s.Kubeconfig, s.URL)
}

func api(t *testing.T, kubeconfig, url string) process.API {
	t.Helper()
	c, err := process.Client(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return process.API{Client: c, URL: url}
}

// startEither starts anykind, or kube-apiserver with -reference.
func startEither(t *testing.T, flags ...string) process.API {
	t.Helper()
	if !*reference {
		_, a := start(t, flags...)
		return a
	}
	server, err := program.KubeAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := program.Etcd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := process.StartReference(t.Context(), server, etcd, dir, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	config, err := os.ReadFile(r.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := api(t, r.Kubeconfig, regexp.MustCompile(`https://[^"]+`).FindString(string(config)))
	token := client.Client.Transport
	client.Client.Transport = bearer{token}
	return client
}

// bearer adds the token of the reference's administrator.
type bearer struct{ http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer admin-token")
	}
	return b.RoundTripper.RoundTrip(r)
}

// A call is a request of a test. Its audit id is its name.
type call struct {
	name, method, path, body string
	header                   map[string]string
}

// parent returns the header of a client in a trace of its own. flags are 01 if the client samples the trace.
func parent(name, flags string) string {
	return fmt.Sprintf("00-%x-b7ad6b7169203331-%s", md5.Sum([]byte(name)), flags)
}

// send sends a request and reads its response.
func send(t *testing.T, to process.API, c call) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, to.URL+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "test")
	r.Header.Set("Audit-Id", c.name)
	for key, value := range c.header {
		r.Header.Set(key, value)
	}
	response, err := to.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
}

// admitting is a webhook that allows every request.
func admitting(t *testing.T) *httptest.Server {
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		json.NewEncoder(w).Encode(&review)
	}))
	t.Cleanup(hook.Close)
	return hook
}

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	object     = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"test":"traces"}}}`
)

// The spans of requests are those of kube-apiserver, as far as both have them.
func TestSpans(t *testing.T) {
	spans := startCollector(t)
	server := startEither(t, configured(t, "endpoint: "+spans.address, "samplingRatePerMillion: 1000000"))
	hook := admitting(t)
	for kind, path := range map[string]string{"Mutating": "mutating", "Validating": "validating"} {
		send(t, server, call{"hook", "POST", "/apis/admissionregistration.k8s.io/v1/" + path + "webhookconfigurations", hookFor(hook, kind), nil})
	}
	client, patch := map[string]string{}, map[string]string{"Content-Type": "application/merge-patch+json"}
	out := &strings.Builder{}
	for _, c := range []call{
		{"get", "GET", "/api/v1/namespaces/default", "", client},
		{"get-without-a-trace", "GET", "/api/v1/namespaces/default", "", nil},
		{"get-missing", "GET", configMaps + "/missing", "", client},
		{"list", "GET", configMaps + "?limit=5", "", client},
		{"list-all", "GET", "/api/v1/configmaps?labelSelector=test%3Dtraces", "", client},
		{"create-in-group", "POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", `{"metadata":{"name":"a"}}`, client},
		{"create-with-webhooks", "POST", configMaps, object, client},
		{"update-with-webhooks", "PUT", configMaps + "/a", strings.Replace(object, "traces", "x", 1), client},
		{"patch", "PATCH", "/apis/coordination.k8s.io/v1/namespaces/default/leases/a", `{"metadata":{"labels":{"a":"b"}}}`, patch},
		{"status", "PATCH", "/api/v1/namespaces/default/status", `{"metadata":{"labels":{"a":"b"}}}`, patch},
		{"delete", "DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/a", "", client},
		{"delete-collection", "DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases?labelSelector=none", "", client},
		{"watch", "GET", configMaps + "?watch=1&timeoutSeconds=1&resourceVersion=0", "", client},
		{"impersonated", "GET", "/api/v1/namespaces/default", "", map[string]string{"Impersonate-User": "system:kube-scheduler"}},
		{"health", "GET", "/readyz?verbose", "", client},
		{"discovery", "GET", "/api/v1", "", client},
		{"no-path", "GET", "/nothing", "", client},
		{"odd-method", "BREW", "/api/v1/namespaces/default", "", client},
	} {
		if c.header != nil {
			c.header = maps.Clone(c.header)
			c.header["Traceparent"] = parent(c.name, "01")
		}
		send(t, server, c)
		own, all := spans.ofRequest(t, c.name)
		fmt.Fprintf(out, "# %s: %s %s\n%s\n", c.name, c.method, c.path, render(own, all))
	}
	golden(t, out.String())
}

func golden(t *testing.T, got string) {
	t.Helper()
	const file = "testdata/spans.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("spans differ from those of kube-apiserver (-want +got):\n%s", diff)
	}
}

// hookFor returns a configuration of admission webhooks for ConfigMaps named a.
func hookFor(hook *httptest.Server, kind string) string {
	configuration, err := json.Marshal(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind + "WebhookConfiguration",
		"metadata": map[string]any{"name": strings.ToLower(kind)},
		"webhooks": []any{map[string]any{
			"name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": []string{"v1"},
			"clientConfig":    map[string]any{"url": hook.URL + "/x", "caBundle": pemOf(hook)},
			"rules":           []any{map[string]any{"apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"configmaps"}, "operations": []string{"*"}}},
			"matchConditions": []any{map[string]any{"name": "a", "expression": "request.name == 'a'"}},
		}},
	})
	if err != nil {
		panic(err) // the map has JSON values
	}
	return string(configuration)
}

// pemOf returns the certificate of a server as PEM.
func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
