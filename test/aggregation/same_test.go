package aggregation

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	same = flag.Bool("same", false, "compare with kube-apiserver in front of the same program")
	seed = flag.Uint64("seed", 1, "decides about the order of the requests")
)

// A side is a front with a backend, and a client as an administrator.
type side struct {
	front   *front
	backend *backend
	client  *http.Client
	url     string
	kubectl kubectl
}

func newSide(t *testing.T, reference bool) *side {
	t.Helper()
	dir := t.TempDir()
	f, err := startFront(t.Context(), filepath.Join(dir, "front"), reference)
	must(t, err)
	t.Cleanup(func() { _ = f.stop() }) // The test has its results.
	s := &side{front: f, kubectl: kubectl{t.Context(), f.kubeconfig}}
	s.backend, err = install(t.Context(), filepath.Join(dir, "backend"), f.kubeconfig, "")
	if s.backend != nil {
		t.Cleanup(func() { _ = s.backend.end(*options.logs) })
	}
	must(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	must(t, err)
	s.client, err = rest.HTTPClientFor(config)
	must(t, err)
	t.Cleanup(s.client.CloseIdleConnections)
	s.url = config.Host
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A call is a request.
type call struct {
	method, path, accept, body string
}

func (c call) String() string { return strings.TrimSpace(c.method + " " + c.path + " " + c.accept) }

const (
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	tables     = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	protobuf   = "application/vnd.kubernetes.protobuf"
	flunders   = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders"
)

// reads are requests without an effect.
var reads = []call{
	{"GET", "/apis", aggregated, ""},
	{"GET", "/apis", "application/json", ""},
	{"GET", "/apis/wardle.example.com", "application/json", ""},
	{"GET", "/apis/wardle.example.com/", "application/json", ""},
	{"GET", "/apis/wardle.example.com/v1alpha1", "application/json", ""},
	{"GET", "/apis/wardle.example.com/v1beta1", "application/json", ""},
	{"GET", "/apis/wardle.example.com/v9", "application/json", ""},
	{"GET", "/openapi/v3", "application/json", ""},
	{"GET", "/openapi/v3/apis/wardle.example.com/v1alpha1", "application/json", ""},
	{"GET", "/openapi/v3/apis/wardle.example.com", "application/json", ""},
	{"GET", "/openapi/v2", "application/json", ""},
	{"GET", flunders, "application/json", ""},
	{"GET", flunders, tables, ""},
	{"GET", flunders + "?labelSelector=a%3Db", tables, ""},
	{"GET", flunders + "/missing", "application/json", ""},
	{"GET", flunders + "/one", tables, ""},
	{"GET", flunders + "/one/status", "application/json", ""},
	{"GET", "/apis/wardle.example.com/v1alpha1/nonsense", "application/json", ""},
	{"GET", "/apis/wardle.example.com/v1alpha1/fischers", "application/yaml", ""},
	{"GET", "/apis/wardle.example.com/v1alpha1/flunders?limit=1", "application/json", ""},
	{"GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.wardle.example.com", "application/json", ""},
	{"GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.wardle.example.com/status", "application/json", ""},
	{"GET", "/apis/wardle.example.com/v1alpha1/flunders", "text/nonsense", ""},
}

// writes are requests that, in this order, leave no trace.
var writes = []call{
	{"POST", flunders, "application/json", `{"metadata":{"name":"two","labels":{"a":"b"}},"spec":{"reference":"x"}}`},
	{"POST", flunders, "application/json", `{"metadata":{"name":"two"}}`},
	{"POST", flunders, "application/json", `{"metadata":{"name":"Not A Name"}}`},
	{"POST", flunders, "application/json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod"}}`},
	{"POST", flunders + "?fieldValidation=Strict", "application/json", `{"metadata":{"name":"three"},"colour":"red"}`},
	{"POST", strings.Replace(flunders, "default", "nowhere", 1), "application/json", `{"metadata":{"name":"lost"}}`},
	{"PUT", flunders + "/two", "application/json", `{"metadata":{"name":"two"},"spec":{"reference":"y"}}`},
	{"PUT", flunders + "/two", "application/json", `{`},
	{"DELETE", flunders + "/two", "application/json", ""},
	{"DELETE", flunders + "/two", "application/json", ""},
	{"DELETE", flunders + "?labelSelector=none%3Dhere", "application/json", ""},
	{"PATCH", flunders + "/one", "application/json", `{"metadata":{"annotations":{"a":"b"}}}`},
}

// do sends a request and returns the response as text for comparison.
func (s *side) do(t *testing.T, c call) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader(c.body))
	must(t, err)
	r.Header.Set("Accept", c.accept)
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
		if c.method == "PATCH" {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	answer, err := s.client.Do(r)
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return fmt.Sprintf("%d %s\n%s", answer.StatusCode, answer.Header.Get("Content-Type"), normal(c, body))
}

// names are patterns of values that differ from run to run.
var names = []struct {
	what *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`"resourceVersion": ?"\d+"`), `"resourceVersion":"N"`},
	{regexp.MustCompile(`"(age|Age)": ?"\d+[smh]"`), `"AGE"`},
	{regexp.MustCompile(`"port": ?\d+`), `"port":0`},
	{regexp.MustCompile(`127\.0\.0\.1:\d+|localhost:\d+`), "ADDRESS"},
	{regexp.MustCompile(`"caBundle": ?"[^"]*"`), `"caBundle":""`},
	{regexp.MustCompile(`\?hash=[0-9A-F]+`), "?hash=H"},
	{regexp.MustCompile(`"\d+(\.\d+)?[smh](\d+s)?"`), `"AGE"`},
	{regexp.MustCompile(`\\"port\\":\d+`), `\"port\":0`},
	{regexp.MustCompile(`\\"caBundle\\":\\"[^"]*\\"`), `\"caBundle\":\"\"`},
}

// normal returns a body without values that differ from run to run. Of documents for all groups, it
// keeps only the part of the group.
func normal(c call, body []byte) string {
	var doc any
	if json.Unmarshal(about(c.path, body), &doc) == nil {
		body, _ = json.MarshalIndent(doc, "", " ") // with fields in one order
	}
	for _, n := range names {
		body = n.what.ReplaceAll(body, []byte(n.is))
	}
	return string(body)
}

func about(path string, body []byte) []byte {
	var doc map[string]any
	if json.Unmarshal(body, &doc) != nil {
		return body
	}
	mine := func(m any) map[string]any {
		all, _ := m.(map[string]any)
		out := map[string]any{}
		for name, v := range all {
			if strings.Contains(name, "wardle") {
				out[name] = v
			}
		}
		return out
	}
	switch path {
	case "/openapi/v2":
		doc = map[string]any{"paths": mine(doc["paths"]), "definitions": mine(doc["definitions"]), "common": common(doc)}
	case "/openapi/v3":
		doc = map[string]any{"paths": mine(doc["paths"])}
	default:
		return body
	}
	out, _ := json.Marshal(doc)
	return out
}

// common returns the OpenAPI v2 definitions that both servers have and the group needs. Some types
// have no description in the published packages, and anykind has one in its own words, with or without
// an aggregated server: these descriptions are not compared.
func common(doc map[string]any) map[string]any {
	all, _ := doc["definitions"].(map[string]any)
	out := map[string]any{}
	for name, v := range all {
		if strings.HasPrefix(name, "io.k8s.apimachinery.pkg.apis.meta.v1.") {
			out[name] = withoutWords(v)
		}
	}
	return out
}

func withoutWords(v any) any {
	definition, _ := v.(map[string]any)
	delete(definition, "description")
	fields, _ := definition["properties"].(map[string]any)
	for _, field := range fields {
		if f, ok := field.(map[string]any); ok {
			delete(f, "description")
		}
	}
	return v
}

// The same requests get the same responses, in any order, from both fronts.
func TestSame(t *testing.T) {
	if !*same {
		t.Skip("compares with a kube-apiserver: -same")
	}
	ours, theirs := newSide(t, false), newSide(t, true)
	both := []*side{ours, theirs}
	for _, s := range both {
		s.do(t, call{"POST", flunders, "application/json", `{"metadata":{"name":"one"}}`})
	}
	// kube-apiserver fetches the documents of a server some time after the creation of its APIService.
	for _, path := range []string{"/openapi/v3", "/openapi/v2"} {
		waitUntil(t, theirs, call{"GET", path, "application/json", ""}, "wardle")
	}
	compare := func(calls []call) {
		for _, c := range calls {
			if got, want := ours.do(t, c), theirs.do(t, c); got != want {
				t.Errorf("%s\n%s", c, difference(got, want))
			}
		}
	}
	random := rand.New(rand.NewPCG(*seed, 0))
	for range 3 {
		all := slices.Clone(reads)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		at := random.IntN(len(all))
		compare(slices.Concat(all[:at], writes, all[at:]))
	}
	// The backend is down.
	for _, s := range both {
		must(t, s.backend.kill(*options.logs))
		_, err := s.kubectl.run("annotate", "service", "api", "--namespace=wardle", "look=again")
		must(t, err)
		_, err = s.kubectl.run("wait", "apiservice", "v1alpha1.wardle.example.com", "v1beta1.wardle.example.com", "--for=condition=Available=false", "--timeout=2m")
		must(t, err)
	}
	waitUntil(t, theirs, reads[0], `"freshness": "Stale"`)
	compare(reads)
	compare(writes[:1])
	if len(slices.Compact([]string{kubectlSays(ours), kubectlSays(theirs)})) > 1 {
		t.Errorf("kubectl says\n%s", difference(kubectlSays(ours), kubectlSays(theirs)))
	}
}

// kubectlSays returns kubectl's output for a server whose backend is down.
func kubectlSays(s *side) string {
	var said strings.Builder
	for _, args := range [][]string{{"get", "flunders"}, {"api-resources", "--api-group=wardle.example.com"}, {"get", "apiservice", "v1alpha1.wardle.example.com", "-o", "jsonpath={.status.conditions[0].reason}"}} {
		out, err := s.kubectl.run(args...)
		fmt.Fprintln(&said, out, err)
	}
	return normal(call{}, []byte(said.String()))
}

// waitUntil waits until a response contains a text.
func waitUntil(t *testing.T, s *side, c call, has string) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(2 * waitTimeout); !strings.Contains(s.do(t, c), has); {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("%s does not come to have %q", c, has)
		}
	}
}

// difference returns some of the lines in which two texts differ.
func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	const most = 30
	return fmt.Sprintf("anykind:\n  %s\nkube-apiserver:\n  %s", strings.Join(a[:min(most, len(a))], "\n  "), strings.Join(b[:min(most, len(b))], "\n  "))
}
