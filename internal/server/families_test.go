package server

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
)

// Metrics have their stability level, and the start time of the process.
func TestFamilies(t *testing.T) {
	o := everyone(nothing)
	o.Version = "v1.37.1+mine"
	s := New(o)
	ask(s, "GET", "/api", "bob")
	ask(s, "GET", "/livez", "bob")
	for path, want := range map[string][]string{
		"/metrics": {
			"# HELP apiserver_request_total [STABLE] ", "# HELP apiserver_request_sli_duration_seconds [ALPHA] ",
			`kubernetes_build_info{build_date="`, `git_version="v1.37.1+mine"`, `version_info{binary="1.37.1",component="kube",emulation="1.37",min_compat="1.36"} 1`,
		},
		"/metrics/slis": {"# HELP kubernetes_healthcheck [STABLE] "},
	} {
		w := ask(s, "GET", path, "bob")
		for _, text := range want {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s has no %s", path, text)
			}
		}
		began, err := strconv.ParseInt(w.Header().Get("Process-Start-Time-Unix"), 10, 64)
		if age := time.Now().Unix() - began; err != nil || age < 0 || age > 60 {
			t.Errorf("%s: %d seconds, %v", path, age, err)
		}
	}
}

// Series with values that are not allowed are merged into one. Disabled metrics are not shown.
func TestAllowedLabels(t *testing.T) {
	o := everyone(nothing)
	o.Catalog = &resource.Catalog{}
	o.Catalog.Swap(kinds())
	o.Metrics = MetricOptions{
		Allowed: map[string]map[string][]string{
			"apiserver_request_total":            {"verb": {"LIST"}, "resource": {"pods"}},
			"apiserver_request_duration_seconds": {"verb": {"none"}, "scope": {}},
		},
		Disabled: []string{"go_goroutines"},
	}
	s := New(o)
	for range 2 { // stays the same
		for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/a/pods/x", "/api/v1/namespaces/a/pods/x?watch=0"} {
			ask(s, "GET", path, "bob")
		}
		ask(s, "DELETE", "/api/v1/namespaces/a/pods/x", "bob")
		ask(s, "GET", "/metrics", "bob")
	}
	got := counts(t, s, "apiserver_request_total")
	want := []string{
		`{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 2`,
		`{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="unexpected",version="v1"} 6`,
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	got = counts(t, s, "apiserver_request_duration_seconds_count")
	if want := `{component="apiserver",dry_run="",group="",resource="pods",scope="unexpected",subresource="",verb="unexpected",version="v1"} 8`; !slices.Equal(got, []string{want}) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := counts(t, s, "apiserver_request_duration_seconds_bucket"); !strings.Contains(strings.Join(got, "\n"), `le="+Inf"} 8`) {
		t.Errorf("%s", got)
	}
	if strings.Contains(ask(s, "GET", "/metrics", "bob").Body.String(), "\ngo_goroutines ") {
		t.Error("go_goroutines is shown")
	}
}
