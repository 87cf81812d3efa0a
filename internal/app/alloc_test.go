//go:build !race

// The race detector allocates as well, and empties pools.

package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// handled is an App that is called without a network.
type handled struct {
	testing.TB
	app *App
}

func handle(t testing.TB) *handled { return handleWith(t, Options{}) }

func handleWith(t testing.TB, o Options) *handled {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte(`secret,admin,1,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.TokenFile = tokens
	a, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	h := &handled{t, a}
	h.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", widgets, 201)
	for i := range 500 {
		h.do("POST", "/apis/example.com/v1/namespaces/default/widgets", "application/json", widget("listed", i), 201)
	}
	return h
}

// do makes a request. The count includes the allocations of the client, which are few: the request
// and the recorder.
func (h *handled) do(method, path, contentType, body string, want int) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Accept", "application/json")
	if body != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := &answer{header: http.Header{}}
	h.app.server.ServeHTTP(w, r)
	if w.code != want {
		h.Fatalf("%s %s: %d, not %d", method, path, w.code, want)
	}
}

type answer struct {
	header http.Header
	code   int
}

func (a *answer) Header() http.Header  { return a.header }
func (a *answer) WriteHeader(code int) { a.code = code }
func (a *answer) Flush()               {}
func (a *answer) Write(p []byte) (int, error) {
	if a.code == 0 {
		a.code = 200
	}
	return len(p), nil
}

// A kindOfRequest is measured. Each call makes another request.
type kindOfRequest struct {
	name    string
	ceiling float64
	do      func(n int)
}

func (h *handled) requests() []kindOfRequest {
	const objects, pods = "/apis/example.com/v1/namespaces/default/widgets", "/api/v1/namespaces/default/pods"
	h.do("POST", pods, "application/json", podOf("changed", 0), 201)
	h.do("POST", pods, "application/json", podOf("applied", 0), 201)
	return []kindOfRequest{
		{"create", 305, func(n int) { h.do("POST", objects, "application/json", widget("created", n), 201) }},
		{"get", 72, func(n int) { h.do("GET", fmt.Sprintf("%s/listed%d", objects, n%500), "", "", 200) }},
		{"list", 140, func(n int) { h.do("GET", objects+"?labelSelector=of%3Dlisted", "", "", 200) }},
		{"merge patch", 335, func(n int) {
			h.do("PATCH", fmt.Sprintf("%s/listed%d", objects, n%500), "application/merge-patch+json", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 10+n), 200)
		}},
		{"create and delete", 415, func(n int) {
			h.do("POST", objects, "application/json", widget("deleted", n), 201)
			h.do("DELETE", fmt.Sprintf("%s/deleted%d", objects, n), "", "", 200)
		}},
		{"apply", 500, func(n int) {
			h.do("PATCH", fmt.Sprintf("%s/listed%d?fieldManager=a&force=true", objects, n%500), "application/apply-patch+yaml", widget("listed", n%500, 1000+n), 200)
		}},
		{"create a pod", 1505, func(n int) { h.do("POST", pods, "application/json", podOf(fmt.Sprint("created", n), n), 201) }},
		{"merge patch of a pod", 1610, func(n int) {
			h.do("PATCH", pods+"/changed", "application/merge-patch+json", fmt.Sprintf(`{"spec":{"activeDeadlineSeconds":%d}}`, 1_000_000_000-n), 200)
		}},
		{"strategic merge patch of a pod", 1660, func(n int) {
			h.do("PATCH", pods+"/changed", "application/strategic-merge-patch+json", fmt.Sprintf(`{"spec":{"containers":[{"name":"web","image":"web:%d"}]}}`, n), 200)
		}},
		{"apply a pod", 2540, func(n int) {
			h.do("PATCH", pods+"/applied?fieldManager=a&force=true", "application/apply-patch+yaml", podOf("applied", n), 200)
		}},
	}
}

// Allocations per request stay below these ceilings, set at ten percent above the measured value.
// Lower one when it is too high; think before raising it.
func TestAllocations(t *testing.T) {
	// Native histograms allocate when a duration has a new bucket.
	o := Options{Gates: gate.With(map[gate.Name]bool{gate.NativeHistograms: false})}
	for _, k := range handleWith(t, o).requests() {
		n := 0
		for range 50 { // to fill caches and pools
			k.do(n)
			n++
		}
		got := testing.AllocsPerRun(200, func() { k.do(n); n++ })
		if got > k.ceiling {
			t.Errorf("%s: %.0f allocations, more than %.0f", k.name, got, k.ceiling)
		}
		t.Logf("%s: %.0f allocations", k.name, got)
	}
}

func BenchmarkRequests(b *testing.B) {
	h := handle(b)
	n := 0
	for _, k := range h.requests() {
		b.Run(k.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.do(n)
				n++
			}
		})
	}
}

// widget returns the nth object of a set, as JSON.
func widget(set string, n int, changed ...int) string {
	replicas := n
	if len(changed) > 0 {
		replicas = changed[0]
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": fmt.Sprint(set, n), "namespace": "default", "labels": map[string]any{"of": set}},
		"spec": map[string]any{
			"replicas": replicas, "image": "registry.example.com/widget:v1", "args": []any{"--serve", "--workers=4"},
			"ports":    []any{map[string]any{"name": "http", "port": 8080}, map[string]any{"name": "metrics", "port": 9090}},
			"settings": map[string]any{"level": "info", "region": "north", "timeout": "30s"},
		},
	})
	if err != nil {
		panic(err) // it has only JSON types
	}
	return string(data)
}

// podOf returns a pod of two containers, as JSON.
func podOf(name string, tag int) string {
	container := func(name string, port int) map[string]any {
		probe := map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": "http"}}
		return map[string]any{
			"name": name, "image": fmt.Sprint(name, ":", tag), "args": []any{"--serve", "--workers=4"},
			"ports": []any{map[string]any{"name": "http", "containerPort": port}},
			"env": []any{
				map[string]any{"name": "LEVEL", "value": "info"},
				map[string]any{"name": "NAME", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}},
			},
			"resources":     map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}, "limits": map[string]any{"memory": "256Mi"}},
			"livenessProbe": probe, "readinessProbe": probe,
			"volumeMounts": []any{map[string]any{"name": "config", "mountPath": "/etc/web"}},
		}
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{
			"containers": []any{container("web", 8080), container("sidecar", 9090)},
			"volumes":    []any{map[string]any{"name": "config", "configMap": map[string]any{"name": "web"}}},
		},
	})
	if err != nil {
		panic(err) // it has only JSON types
	}
	return string(data)
}

const widgets = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "widgets.example.com"},
	"spec": {
		"group": "example.com", "scope": "Namespaced",
		"names": {"plural": "widgets", "kind": "Widget"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
			"type": "object",
			"properties": {"spec": {
				"type": "object",
				"properties": {
					"replicas": {"type": "integer"}, "most": {"type": "integer", "default": 1000000},
					"image": {"type": "string"},
					"args": {"type": "array", "items": {"type": "string"}},
					"ports": {
						"type": "array", "maxItems": 10, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
						"items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}
					},
					"settings": {"type": "object", "additionalProperties": {"type": "string"}}
				},
				"x-kubernetes-validations": [{"rule": "self.replicas <= self.most"}, {"rule": "self.ports.all(p, p.port != 22)"}]
			}}
		}}}]
	}
}`
