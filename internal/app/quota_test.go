package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const gears = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gears.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"gears","kind":"Gear"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

// Sixty-four clients create custom objects as fast as they can. The quota is exact at every stored
// revision, in every store.
func TestQuotaUnderSixtyFourCreators(t *testing.T) {
	const clients, each, most = 64, 4, 150
	for name, o := range map[string]Options{"memory": {InMemory: true}, "file": {}} {
		t.Run(name, func(t *testing.T) {
			o.Dir = t.TempDir()
			a := start(t, o)
			defer stop(t, a)
			c, url := client(t, a, admin(t, a)), a.URL()
			want := func(code, want int, body string) {
				t.Helper()
				if code != want {
					t.Fatalf("%d %s", code, body)
				}
			}
			code, body := ask(t, c, http.MethodPost, url+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", gears)
			want(code, http.StatusCreated, body)
			quotas := url + "/api/v1/namespaces/default/resourcequotas"
			code, body = ask(t, c, http.MethodPost, quotas, "", fmt.Sprintf(`{"metadata":{"name":"q"},"spec":{"hard":{"count/gears.example.com":"%d"}}}`, most))
			want(code, http.StatusCreated, body)
			for !strings.Contains(body, `"used"`) {
				code, body = ask(t, c, http.MethodGet, quotas+"/q", "", "")
				want(code, http.StatusOK, body)
			}
			var created atomic.Int64
			var all sync.WaitGroup
			for i := range clients {
				all.Go(func() {
					for j := range each {
						code, body := ask(t, c, http.MethodPost, url+"/apis/example.com/v1/namespaces/default/gears", "",
							fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"name":"g%d-%d"}}`, i, j))
						switch code {
						case http.StatusCreated:
							created.Add(1)
						case http.StatusForbidden:
						default:
							t.Errorf("%d %s", code, body)
						}
					}
				})
			}
			all.Wait()
			there, charged := replayQuota(t, a)
			if there != most || charged != most || created.Load() != most {
				t.Errorf("%d were created, there are %d, and %d are charged", created.Load(), there, charged)
			}
		})
	}
}

// replayQuota checks every revision: the charged usage covers the existing objects and is within the
// quota.
func replayQuota(t *testing.T, a *App) (there, charged int64) {
	t.Helper()
	end, err := a.backend.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range a.backend.Watch(t.Context(), "/registry/", 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			switch {
			case strings.HasPrefix(e.Key, "/registry/example.com/gears/"):
				there++
			case strings.HasPrefix(e.Key, "/registry/resourcequotas/default/"):
				var q corev1.ResourceQuota
				if err := json.Unmarshal(e.Value, &q); err != nil {
					t.Fatal(err)
				}
				used, hard := q.Status.Used["count/gears.example.com"], q.Spec.Hard["count/gears.example.com"]
				if charged = used.Value(); there > charged || charged > hard.Value() {
					t.Errorf("at revision %d there are %d, and %d are charged of %d", e.Revision, there, charged, hard.Value())
				}
			}
		}
		if batch.Revision >= end {
			return there, charged
		}
	}
	return there, charged
}
