package publish

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/network/cluster/clustertest"
)

// Each served version gets an APIService. An APIService of another owner gets the CA bundle if it
// has the Service of this server, and stays unchanged otherwise.
func TestPublish(t *testing.T) {
	const mine = `"service":{"name":"anykind","namespace":"system"`
	for _, tt := range []struct {
		name, before string // of the cluster
		has          []string
		hasNot       string
		writes       int
	}{
		{"there is none", "", []string{mine, `"caBundle":"Y2E="`, `"group":"example.com"`, `"versionPriority":100`, label}, "", 1},
		{"it is right", `{metadata: {labels: {app.kubernetes.io/managed-by: anykind}}, spec: {group: example.com, version: v1, caBundle: Y2E=, service: {namespace: system, name: anykind}}}`, []string{mine}, "", 0},
		{"another client has created it", `{spec: {group: example.com, version: v1, versionPriority: 7, service: {namespace: system, name: anykind}}}`,
			[]string{mine, `"caBundle":"Y2E="`, `"versionPriority":7`}, label, 1},
		{"it leads to another Service", `{spec: {group: example.com, version: v1, service: {namespace: system, name: other}}}`, []string{`"other"`}, "caBundle", 0},
		{"it is served by the cluster", `{spec: {group: example.com, version: v1}}`, []string{"example.com"}, "caBundle", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := clustertest.Start(t)
			const at = path + "/v1.example.com"
			if tt.before != "" {
				server.Put(at, tt.before)
			}
			service, err := ParseService("system/anykind")
			if err != nil {
				t.Fatal(err)
			}
			c := &Controller{Options: Options{Cluster: server.Client(), Service: service, CA: []byte("ca")}, objects: &controller.Objects{Logger: slog.New(slog.DiscardHandler)}}
			if err := c.keep(t.Context(), "example.com", "v1"); err != nil {
				t.Fatal(err)
			}
			got := server.Get(at)
			for _, has := range tt.has {
				if !strings.Contains(got, has) {
					t.Errorf("%s has no %s", got, has)
				}
			}
			if tt.hasNot != "" && strings.Contains(got, tt.hasNot) {
				t.Errorf("%s has %s", got, tt.hasNot)
			}
			if n := server.Requests("PATCH"); n != tt.writes {
				t.Errorf("written %d times, want %d", n, tt.writes)
			}
		})
	}
}

func TestParseService(t *testing.T) {
	for text, want := range map[string]Service{
		"a/b": {"a", "b", 443}, "a/b:8443": {"a", "b", 8443}, "a": {}, "a/": {}, "/b": {}, "a/b/c": {}, "a/b:0": {}, "a/b:x": {}, "": {},
	} {
		got, err := ParseService(text)
		if (err != nil) != (want == Service{}) || err == nil && got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
