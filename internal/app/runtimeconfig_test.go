package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
)

// Disabled kinds are hidden from clients. The server itself still uses them: controllers work, and
// definitions are served.
func TestRuntimeConfig(t *testing.T) {
	var config builtin.RuntimeConfig
	if err := config.Set("api/all=false,coordination.k8s.io/v1=true,/v1/configmaps=true"); err != nil {
		t.Fatal(err)
	}
	a := start(t, Options{RuntimeConfig: config})
	defer stop(t, a)
	awaitStartAs(t, a, config)
	c := client(t, a, admin(t, a))
	for path, want := range map[string]int{
		"/apis/coordination.k8s.io/v1/leases":                        http.StatusOK,
		"/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt": http.StatusOK,
		"/api/v1/namespaces/kube-system/serviceaccounts/default":     http.StatusNotFound,
		"/api/v1/namespaces":                                         http.StatusNotFound,
		"/apis/events.k8s.io/v1/events":                              http.StatusNotFound,
		"/apis/events.k8s.io":                                        http.StatusNotFound,
		"/openapi/v3/apis/events.k8s.io/v1":                          http.StatusNotFound,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":    http.StatusOK,
	} {
		if code, body := ask(t, c, http.MethodGet, a.URL()+path, "", ""); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if _, body := ask(t, c, http.MethodGet, a.URL()+"/api/v1", "", ""); strings.Contains(body, "secrets") || !strings.Contains(body, "configmaps") {
		t.Errorf("served in v1: %s", body)
	}
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"}}`
	if code, body := ask(t, c, http.MethodPost, a.URL()+"/apis/coordination.k8s.io/v1/namespaces/default/leases", "", lease); code != http.StatusCreated {
		t.Errorf("%d %s", code, body)
	}
	if _, err := Start(t.Context(), Options{RuntimeConfig: builtin.RuntimeConfig{"apps/v9": "true"}}); err == nil {
		t.Error("it starts with a version that is none")
	}
}
