package server

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// counts returns the series of a metric with their values.
func counts(t *testing.T, s *Server, metric string) (series []string) {
	t.Helper()
	r := newRequest("GET", "/metrics", "root")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, metric+"{") {
			series = append(series, strings.TrimSpace(strings.TrimPrefix(line, metric)))
		}
	}
	return series
}

// fewLabels matches labels that are the same in all these tests.
var fewLabels = regexp.MustCompile(`group="[^"]*",|,version="[^"]*"|dry_run="",`)

func kinds() *resource.Set {
	pods := resource.New(resource.Definition{
		Plural: "pods", Namespaced: true, Dialect: resource.CompiledIn,
		Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true, Subresources: []resource.Subresource{{Name: "log"}, {Name: "exec"}, {Name: "status"}}}},
	})
	things := resource.New(resource.Definition{
		Group: "g", Plural: "things", Namespaced: true,
		Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true, Deprecated: true, RemovedRelease: "1.99"}},
	})
	return resource.NewSet([]*resource.Definition{pods, things})
}

// The labels equal those of kube-apiserver for the same requests.
func TestLabels(t *testing.T) {
	const pods, things = "/api/v1/namespaces/a/pods", "/apis/g/v1/namespaces/a/things"
	resources := func(code, resource, scope, subresource, verb string) string {
		return `{code="` + code + `",component="apiserver",resource="` + resource + `",scope="` + scope + `",subresource="` + subresource + `",verb="` + verb + `"} 1`
	}
	tests := []struct{ method, path, contentType, want string }{
		{"GET", pods, "", resources("200", "pods", "namespace", "", "LIST")},
		{"HEAD", "/api/v1/pods", "", resources("200", "pods", "cluster", "", "LIST")},
		{"GET", pods + "/x", "", resources("200", "pods", "resource", "", "GET")},
		{"GET", pods + "?fieldSelector=metadata.name=x", "", resources("200", "pods", "namespace", "", "LIST")},
		{"GET", things + "?fieldSelector=metadata.name=x", "", resources("200", "things", "resource", "", "GET")},
		{"GET", things + "?fieldSelector=metadata.name=x&watch=1", "", resources("200", "things", "resource", "", "WATCH")},
		{"GET", pods + "?watch=1", "", resources("200", "pods", "namespace", "", "WATCH")},
		{"POST", pods, "", resources("200", "pods", "resource", "", "POST")},
		{"PUT", pods + "/x/status", "", resources("200", "pods", "resource", "status", "PUT")},
		{"PATCH", pods + "/x", "application/apply-patch+yaml", resources("200", "pods", "resource", "", "APPLY")},
		{"PATCH", pods + "/x", "application/merge-patch+json", resources("200", "pods", "resource", "", "PATCH")},
		{"DELETE", pods + "/x", "", resources("200", "pods", "resource", "", "DELETE")},
		{"DELETE", pods, "", resources("200", "pods", "namespace", "", "DELETE")},
		{"GET", pods + "/x/log", "", resources("200", "pods", "resource", "log", "CONNECT")},
		{"POST", pods + "/x/exec", "", resources("200", "pods", "resource", "exec", "CONNECT")},
		{"GET", "/readyz", "", `{code="200",component="",resource="",scope="",subresource="/readyz",verb="GET"} 1`},
		{"GET", "/apis", "", `{code="200",component="apiserver",resource="",scope="",subresource="apis",verb="GET"} 1`},
		{"GET", "/openapi/v3/api/v1", "", `{code="200",component="",resource="",scope="",subresource="openapi/v3/",verb="GET"} 1`},
		{"GET", "/readyz/ping", "", ""},
		{"GET", "/version", "", ""},
		{"GET", "/metrics", "", ""},
		{"GET", "/openapi/v2", "", ""},
		{"GET", "/api/v1/pods/x", "", ""},                  // no such path
		{"GET", "/api/v1/namespaces/a/nosuch", "", ""},     // kind
		{"GET", pods + "/x/nosuch", "", ""},                // subresource
		{"GET", "/api/v2/namespaces/a/pods", "", ""},       // version
		{"GET", pods + "/x?code=405", "", ""},              // method
		{"GET", pods + "/forbidden", "", ""},               // 403
		{"GET", pods + "/x?unauthorized=true", "none", ""}, // 401
	}
	for _, test := range tests {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			o := everyone(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("code") == "405" {
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
			})
			o.Catalog = &resource.Catalog{}
			o.Catalog.Swap(kinds())
			o.Authorizer = authorizer(func(a *authz.Attributes) (bool, string, error) { return a.Name != "forbidden", "", nil })
			s := New(o)
			r := newRequest(test.method, test.path, "bob")
			r.Header.Set("Content-Type", test.contentType)
			if test.contentType == "none" {
				r.Header.Set("Authorization", "Bearer unknown")
			}
			s.ServeHTTP(httptest.NewRecorder(), r)
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			got := counts(t, s, "apiserver_request_total")
			for i := range got {
				got[i] = fewLabels.ReplaceAllString(got[i], "")
			}
			if !slices.Equal(got, want) {
				t.Errorf("counted\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A rejected request is counted although it reaches no handler, and counts as a termination.
func TestRejectedIsCounted(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	o := everyone(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-release })
	o.Catalog = &resource.Catalog{}
	o.Catalog.Swap(kinds())
	o.Limits.Writing = 1
	s := New(o)
	go ask(s, "PUT", "/apis/g/v1/namespaces/a/things/x", "bob")
	<-arrived
	ask(s, "PUT", "/apis/g/v1/namespaces/a/things/x", "bob")
	ask(s, "PUT", "/apis/g/v1/namespaces/a/made-ups/x", "bob")
	close(release)
	for _, want := range []string{
		`{code="429",component="apiserver",dry_run="",group="g",resource="things",scope="resource",subresource="",verb="PUT",version="v1"} 1`,
		`{code="429",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="PUT",version=""} 1`,
	} {
		if got := counts(t, s, "apiserver_request_total"); !slices.Contains(got, want) {
			t.Errorf("%s\nare without\n%s", got, want)
		}
		want = strings.Replace(want, `dry_run="",`, "", 1)
		if got := counts(t, s, "apiserver_request_terminations_total"); !slices.Contains(got, want) {
			t.Errorf("%s\nare without\n%s", got, want)
		}
	}
}

// The SLI duration excludes webhooks and queues.
func TestWaitedIsNotCounted(t *testing.T) {
	o := everyone(func(_ http.ResponseWriter, r *http.Request) { request.From(r.Context()).Wait(time.Hour) })
	o.Catalog = &resource.Catalog{}
	o.Catalog.Swap(kinds())
	s := New(o)
	ask(s, "PUT", "/apis/g/v1/namespaces/a/things/x", "bob")
	for metric, less := range map[string]bool{"apiserver_request_sli_duration_seconds_sum": true, "apiserver_request_duration_seconds_sum": false} {
		got := counts(t, s, metric)
		if len(got) != 1 || strings.Contains(got[0], "} -3599.") != less {
			t.Errorf("%s: %s", metric, got)
		}
	}
}

// Requests for a deprecated version, and the sizes of responses, have metrics.
func TestRequestFamilies(t *testing.T) {
	o := everyone(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 5000)) })
	o.Catalog = &resource.Catalog{}
	o.Catalog.Swap(kinds())
	s := New(o)
	ask(s, "GET", "/apis/g/v1/namespaces/a/things", "bob")
	ask(s, "PUT", "/apis/g/v1/namespaces/a/things/x?dryRun=All", "bob")
	const list = `component="apiserver",group="g",resource="things",scope="namespace",subresource="",verb="LIST",version="v1"`
	for metric, want := range map[string][]string{
		"apiserver_requested_deprecated_apis":          {`{group="g",removed_release="1.99",resource="things",subresource="",version="v1"} 1`},
		"apiserver_response_sizes_sum":                 {`{` + list + `} 5000`},
		"apiserver_request_sli_duration_seconds_count": {`{` + list + `} 1`},
	} {
		if got := counts(t, s, metric); !slices.Equal(got, want) {
			t.Errorf("%s: %s, want %s", metric, got, want)
		}
	}
}
