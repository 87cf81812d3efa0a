package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The store is healthy. The test does not expect a scheduler or a controller manager on this
// machine, but both are probed.
func TestComponentStatuses(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	const path = "/api/v1/componentstatuses"
	list := func(query string) (names []string) {
		t.Helper()
		code, body := ask(t, c, http.MethodGet, a.URL()+path+query, "", "")
		var l corev1.ComponentStatusList
		if err := json.Unmarshal([]byte(body), &l); code != http.StatusOK || err != nil || l.ResourceVersion != "" {
			t.Fatalf("%s: %d %s", query, code, body)
		}
		for _, s := range l.Items {
			names = append(names, s.Name)
			if len(s.Conditions) != 1 || s.Conditions[0].Type != corev1.ComponentHealthy || s.Conditions[0].Message == "" || s.ResourceVersion != "" {
				t.Errorf("%+v", s)
			}
		}
		return names
	}
	for query, want := range map[string][]string{
		"":         {"scheduler", "controller-manager", "etcd-0"},
		"?limit=1": {"scheduler", "controller-manager", "etcd-0"},
		"?fieldSelector=metadata.name%3Dscheduler": {"scheduler"},
		"?labelSelector=a":                         nil,
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, tt := range []struct {
		method, path string
		code         int
		says         string
	}{
		{http.MethodGet, "/etcd-0", http.StatusOK, `"conditions":[{"message":"ok","status":"True","type":"Healthy"}]`},
		{http.MethodGet, "/x", http.StatusNotFound, `componentstatus \"x\" not found`},
		{http.MethodGet, "?watch=1", http.StatusMethodNotAllowed,
			`"message":"watch is not supported on resources of kind \"componentstatuses\"","reason":"MethodNotAllowed","details":{"kind":"componentstatuses"}`},
		{http.MethodPost, "", http.StatusMethodNotAllowed, ""},
		{http.MethodDelete, "/etcd-0", http.StatusMethodNotAllowed, ""},
	} {
		code, body := ask(t, c, tt.method, a.URL()+path+tt.path, "", "")
		if code != tt.code || !strings.Contains(body, tt.says) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, code, body)
		}
	}
	for _, old := range []string{"", "/etcd-0"} {
		if code, body := ask(t, c, http.MethodGet, a.URL()+"/api/v1/watch/componentstatuses"+old, "", ""); code != http.StatusNotFound || !strings.Contains(body, `"details":{}`) {
			t.Errorf("watch by path: %d %s", code, body)
		}
	}
}
