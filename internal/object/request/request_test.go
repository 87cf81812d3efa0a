package request_test

import (
	"net/http/httptest"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
)

// The context of a request carries its Request, including later additions.
func TestFrom(t *testing.T) {
	r := httptest.NewRequest("GET", "/api/v1/namespaces/x/configmaps/y", nil)
	if q, u := request.From(r.Context()), request.UserFrom(r.Context()); q != nil || u != nil {
		t.Errorf("a context without a Request: %v, %v", q, u)
	}
	parsed := request.InfoOf(r)
	if parsed.Verb != "get" || parsed.Resource != "configmaps" || parsed.Namespace != "x" || parsed.Name != "y" {
		t.Errorf("%+v", parsed)
	}
	q := &request.Request{Info: request.Info{Verb: "given"}}
	r = r.WithContext(request.With(r.Context(), q))
	if got := request.InfoOf(r); got.Verb != "given" {
		t.Errorf("parsed again: %+v", got)
	}
	q.User = &request.User{Name: "eve"}
	if got := request.UserFrom(r.Context()); got != q.User {
		t.Error(got)
	}
}

// A streaming subresource has no timeout; a resource of the same name has one.
func TestLongRunning(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/pods?watch=1":                                   true,
		"/api/v1/namespaces/n/pods/p/log":                        true,
		"/api/v1/namespaces/n/pods/p/exec":                       true,
		"/api/v1/namespaces/n/services/s/proxy/a/b":              true,
		"/api/v1/namespaces/n/pods":                              false,
		"/api/v1/namespaces/n/pods/log":                          false,
		"/api/v1/namespaces/n/pods/p/status":                     false,
		"/apis/g.example.com/v1/namespaces/n/watches/w/proxying": false,
		"/log": false,
	} {
		info := request.Parse(httptest.NewRequest("GET", path, nil))
		if got := info.IsLongRunning(); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
