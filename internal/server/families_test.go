package server

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/object/resource"
)

// Metrics have their stability level, and the start time of the process.
func TestFamilies(t *testing.T) {
	o := everyone(nothing)
	o.Version = kubernetes.Version + "+mine"
	s := New(o)
	ask(s, "GET", "/api", "bob")
	ask(s, "GET", "/livez", "bob")
	for path, want := range map[string][]string{
		"/metrics": {
			"# HELP apiserver_request_total [STABLE] ", "# HELP apiserver_request_sli_duration_seconds [ALPHA] ",
			`kubernetes_build_info{build_date="`, `git_version="` + kubernetes.Version + `+mine"`, `version_info{binary="` + kubernetes.Number + `",component="kube",emulation="` + kubernetes.Name + `",min_compat="` + (gate.Current - 1).String() + `"} 1`,
			`kubernetes_feature_enabled{name="HPAScaleToZero",stage="BETA"} 1`, `kubernetes_feature_enabled{name="ShardedListAndWatch",stage="ALPHA"} 0`,
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

// A DELETE of metrics resets counters and histograms, but neither gauges nor the metrics of the Go runtime.
func TestReset(t *testing.T) {
	o := everyone(nothing)
	o.Catalog = &resource.Catalog{}
	o.Catalog.Swap(kinds())
	s := New(o)
	list := func(times int) {
		for range times {
			ask(s, "GET", "/api/v1/pods", "bob")
			ask(s, "GET", "/api/v1/pods?watch=1", "bob")
			ask(s, "GET", "/livez", "bob")
			s.metrics.handshakes.Inc()
		}
	}
	reset := func() {
		t.Helper()
		for _, path := range []string{"/metrics", "/metrics/slis"} {
			if w := ask(s, "DELETE", path, "bob"); w.Code != 200 || w.Body.String() != "metrics reset\n" {
				t.Errorf("%s: %d %q", path, w.Code, w.Body)
			}
		}
	}
	mallocs := 0.0
	// check checks the metrics for lists, and the gauge for watches.
	check := func(lists int) {
		t.Helper()
		const labels = `component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"`
		page := ask(s, "GET", "/metrics", "bob").Body.String()
		for _, series := range []string{
			`apiserver_request_total{code="200",` + labels + "} ",
			"apiserver_request_duration_seconds_count{" + labels + "} ",
			"apiserver_request_duration_seconds_bucket{" + labels + `,le="60"} `,
			"apiserver_request_duration_seconds_bucket{" + labels + `,le="+Inf"} `,
		} {
			_, rest, found := strings.Cut(page, series)
			value, _, _ := strings.Cut(rest, "\n")
			if found != (lists > 0) || found && value != strconv.Itoa(lists) {
				t.Errorf("%s%s, want %d", series, value, lists)
			}
		}
		if !strings.Contains(page, `apiserver_longrunning_requests{`) {
			t.Error("the gauge is not shown")
		}
		if !strings.Contains(page, "\napiserver_tls_handshake_errors_total "+strconv.Itoa(lists)+"\n") {
			t.Errorf("the counter without labels is not %d", lists)
		}
		_, rest, _ := strings.Cut(page, "\ngo_memstats_mallocs_total ")
		value, _, _ := strings.Cut(rest, "\n")
		if now, err := strconv.ParseFloat(value, 64); err != nil || now < mallocs {
			t.Errorf("a counter of the Go runtime: %s after %g", value, mallocs)
		} else {
			mallocs = now
		}
		slis := ask(s, "GET", "/metrics/slis", "bob").Body.String()
		if strings.Contains(slis, "kubernetes_healthchecks_total") != (lists > 0) || !strings.Contains(slis, "kubernetes_healthcheck{") {
			t.Errorf("after %d checks: %s", lists, slis)
		}
	}
	list(3)
	check(3)
	reset()
	check(0)
	list(2)
	check(2)
	list(1)
	check(3)
	reset()
	reset()
	check(0)
	list(5)
	check(5)
}

// After a reset, a series of a resource that was removed and created again has all its counts.
func TestResetOfRemovedSeries(t *testing.T) {
	o := everyone(nothing)
	o.Catalog = &resource.Catalog{}
	o.Catalog.Swap(kinds())
	s := New(o)
	for range 3 {
		ask(s, "GET", "/api/v1/pods", "bob")
	}
	ask(s, "DELETE", "/metrics", "bob")
	o.Catalog.Swap(resource.NewSet(nil))
	ask(s, "GET", "/metrics", "bob")
	o.Catalog.Swap(kinds())
	for range 4 {
		ask(s, "GET", "/api/v1/pods", "bob")
	}
	for _, name := range []string{"apiserver_request_total", "apiserver_request_duration_seconds_count"} {
		if got := counts(t, s, name); len(got) != 1 || !strings.HasSuffix(got[0], " 4") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
