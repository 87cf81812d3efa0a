package server

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
)

// Without traces, no filter is added.
func TestNoTracesNoFilters(t *testing.T) {
	s := New(Options{})
	next := func(*exchange, *http.Request) {}
	for name, got := range map[string]handler{"traced": s.traced(next), "stage": s.stage("audit", next)} {
		if reflect.ValueOf(got).Pointer() != reflect.ValueOf(next).Pointer() {
			t.Errorf("%s wraps the handler", name)
		}
	}
}

func TestSpanName(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                            "GET /api/v1/pods",
		"/api/v1/nodes/n":                         "GET /api/v1/nodes/{:name}",
		"/apis/apps/v1/namespaces/n/deployments":  "GET /apis/apps/v1/namespaces/{:namespace}/deployments",
		"/api/v1/namespaces/n/pods/p/log":         "GET /api/v1/namespaces/{:namespace}/pods/{:name}/log",
		"/api/v1/namespaces/n/pods/p/proxy/a/b":   "GET /api/v1/namespaces/{:namespace}/pods/{:name}/proxy",
		"/apis/apps/v1/watch/namespaces/n/things": "GET /apis/apps/v1/namespaces/{:namespace}/things",
		"/api/v1":  "GET",
		"/healthz": "GET",
	} {
		r := httptest.NewRequest("GET", path, nil)
		info := request.Parse(r)
		if got := spanName(r.Method, &info); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
