package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/object/resource"
)

func TestVersion(t *testing.T) {
	w := ask(New(everyone(nothing)), "GET", "/version", "")
	var v struct {
		version.Info
		Anykind string `json:"anykindVersion"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	if v.Major != "1" || v.Minor != kubernetes.Minor || v.Anykind == "" || v.GoVersion == "" || v.Platform == "" {
		t.Errorf("version %+v", v)
	}
	// Clients parse it as a semantic version.
	parsed, err := utilversion.ParseSemantic(v.GitVersion)
	if err != nil || "v"+parsed.WithBuildMetadata("").String() != kubernetes.Version || parsed.BuildMetadata() != "anykind" {
		t.Errorf("gitVersion %q: %v, %v", v.GitVersion, parsed, err)
	}
	another := everyone(nothing)
	another.Version = kubernetes.Version + "-custom"
	if w := ask(New(another), "GET", "/version", ""); !strings.Contains(w.Body.String(), `"gitVersion": "`+another.Version+`"`) {
		t.Errorf("another version: %s", w.Body)
	}
	if w := ask(New(everyone(nothing)), "POST", "/version", ""); w.Code != 405 {
		t.Errorf("POST answered %d", w.Code)
	}
	for accept, code := range map[string]int{
		"application/json": 200, "*/*": 200, "application/json, */*": 200, "text/html,*/*;q=0.1": 200,
		"text/html": 406, "application/*": 406, "application/yaml": 406, "nonsense": 406,
	} {
		r := newRequest("GET", "/version", "")
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		New(everyone(nothing)).ServeHTTP(w, r)
		if w.Code != code || code == 406 && !strings.Contains(w.Body.String(), "Available representations: application/json") {
			t.Errorf("Accept %s: %d %s", accept, w.Code, w.Body)
		}
	}
}

// Every answer has Strict-Transport-Security if the server is configured so.
func TestStrictTransport(t *testing.T) {
	const header = "Strict-Transport-Security"
	o := everyone(nothing)
	if got := ask(New(o), "GET", "/version", "").Header()[header]; got != nil {
		t.Errorf("unexpected: %v", got)
	}
	o.StrictTransport = []string{"max-age=31536000", "includeSubDomains"}
	for _, path := range []string{"/version", "/nothing"} {
		if got := ask(New(o), "GET", path, "").Header().Get(header); got != "max-age=31536000; includeSubDomains" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestDebugIndexLeadsToItsPages(t *testing.T) {
	o := everyone(nothing)
	o.Pages = []Page{{Path: "store", About: "what is stored", Serve: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "all of it")
	}}}
	o.Flags = []string{"--data-dir=<b>"}
	s := New(o)
	r := newRequest("GET", "/debug/", "bob")
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if body := w.Body.String(); !strings.Contains(body, "--data-dir=&lt;b&gt;") {
		t.Errorf("the flags are not there as they are: %s", body)
	}
	links := regexp.MustCompile(`href="([^"?]*)`).FindAllStringSubmatch(w.Body.String(), -1)
	if w.Code != 200 || len(links) < 5 || !strings.Contains(w.Body.String(), "what is stored") {
		t.Fatalf("index %d: %s", w.Code, w.Body)
	}
	for _, l := range links {
		if strings.HasSuffix(l[1], "/profile") {
			continue // These take long.
		}
		if w := ask(s, "GET", l[1], "bob"); w.Code != 200 {
			t.Errorf("%s answered %d", l[1], w.Code)
		}
	}
	// Clients other than browsers get JSON.
	var list struct{ Paths []string }
	if err := json.Unmarshal(ask(s, "GET", "/debug/", "bob").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(list.Paths, "/debug/store") || !slices.Contains(list.Paths, "/metrics") {
		t.Errorf("paths %v", list.Paths)
	}
	if w := ask(s, "GET", "/debug", "bob"); w.Code != 302 {
		t.Errorf("/debug answered %d", w.Code)
	}
	if w := ask(s, "GET", "/debug/nosuch", "bob"); w.Code != 404 {
		t.Errorf("/debug/nosuch answered %d", w.Code)
	}
}

func widgets() *resource.Definition {
	return resource.New(resource.Definition{
		Group: "g", Plural: "widgets",
		Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true, Subresources: []resource.Subresource{{Name: "status"}}}},
	})
}

// "CVE-2020-8552 client-controlled metric labels: none."
func TestMetricsNameOnlyWhatThereIs(t *testing.T) {
	o := everyone(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "made-up") {
			w.WriteHeader(404)
		}
	})
	o.Catalog = &resource.Catalog{}
	o.Catalog.Swap(resource.NewSet([]*resource.Definition{widgets()}))
	s := New(o)
	for _, path := range []string{
		"/apis/g/v1/widgets", "/apis/g/v1/widgets/made-up-name", "/apis/g/v1/made-ups", "/apis/made-up/v1/widgets",
		"/apis/g/v1made-up/widgets", "/made-up", "/livez", "/apis/g/v1/widgets?watch=true",
		"/apis/g/v1/widgets/a?dryRun=All", "/apis/g/v1/widgets/a?dryRun=made-up",
	} {
		ask(s, "GET", path, "bob")
	}
	ask(s, "MADE-UP", "/apis/g/v1/widgets", "bob")

	got := ask(s, "GET", "/metrics", "bob").Body.String()
	if strings.Contains(strings.ToLower(got), "made-up") {
		t.Errorf("a client made up a label: %s", got)
	}
	for _, want := range []string{
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="g",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_request_total{code="404",component="apiserver",dry_run="",group="g",resource="widgets",scope="resource",subresource="",verb="GET",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="g",resource="widgets",scope="cluster",subresource="",verb="WATCH",version="v1"} 1`,
		`apiserver_request_total{code="200",component="",dry_run="",group="",resource="",scope="",subresource="/livez",verb="GET",version=""} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="All",group="g",resource="widgets",scope="resource",subresource="",verb="GET",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="invalid",group="g",resource="widgets",scope="resource",subresource="",verb="GET",version="v1"} 1`,
		`apiserver_request_duration_seconds_count{component="apiserver",dry_run="",group="g",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_longrunning_requests{component="apiserver",group="g",resource="widgets",scope="cluster",subresource="",verb="WATCH",version="v1"} 0`,
		`apiserver_current_inflight_requests{request_kind="mutating"} 0`,
		`apiserver_current_inflight_requests{request_kind="readOnly"} 1`,
		"go_goroutines ", "process_cpu_seconds_total ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics do not have %s", want)
		}
	}

	// Series of a removed resource are dropped.
	o.Catalog.Swap(resource.NewSet(nil))
	if got := ask(s, "GET", "/metrics", "bob").Body.String(); strings.Contains(got, "widgets") {
		t.Error("metrics still have the resource that is gone")
	}
}
