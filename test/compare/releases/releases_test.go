// Package releases starts a kube-apiserver and an anykind with the same feature gates and emulated releases, and compares
// discovery, OpenAPI, the version and the values of gates.
package releases

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

const all = "--runtime-config=api/all=true"

// settings are the flags of both servers.
var settings = map[string][]string{
	"usual":      nil,
	"no enums":   {"--feature-gates=OpenAPIEnums=false"},
	"all kinds":  {all},
	"all gates":  {all, "--feature-gates=AllAlpha=true,AllBeta=true"},
	"v1.36":      {"--emulated-version=1.36"},
	"v1.36 all":  {"--emulated-version=1.36", all},
	"v1.35":      {"--emulated-version=1.35"},
	"v1.35 all":  {"--emulated-version=1.35", all},
	"v1.34":      {"--emulated-version=kube=1.34"},
	"v1.34 all":  {"--emulated-version=1.34", all},
	"compatible": {"--min-compatibility-version=1.37"},
	"newer":      {"--emulated-version=1.35", "--emulation-forward-compatible", "--runtime-config=api/beta=true"},
	"named": {
		"--emulated-version=1.34", "--runtime-config-emulation-forward-compatible",
		"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=true,resource.k8s.io/v1beta1=true,storagemigration.k8s.io/v1beta1=true",
	},
}

func TestReleases(t *testing.T) {
	if *reference == "" {
		t.Skip("needs -reference start")
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		t.Run(name, func(t *testing.T) {
			o := servers.Options{Reference: *reference, Store: "memory", Dir: t.TempDir(), Theirs: settings[name], Ours: settings[name]}
			p, err := servers.Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			w := world{p}
			w.version(t)
			w.gates(t)
			w.discovery(t)
			w.openAPI(t)
		})
	}
}

type world struct{ *servers.Pair }

// get returns the bodies of both servers.
func (w world) get(t *testing.T, path, accept string) (theirs, ours []byte) {
	t.Helper()
	s := wire.Step{Method: "GET", Path: path}
	if accept != "" {
		s.Header = []wire.Field{{Name: "Accept", Value: accept}}
	}
	var bodies [2][]byte
	for i, c := range []*wire.Client{w.Theirs, w.Ours} {
		a := c.Do(t.Context(), s)
		if a.Code != 200 {
			t.Errorf("%s: %d %.200s", path, a.Code, a.Body)
		}
		bodies[i] = a.Body
	}
	return bodies[0], bodies[1]
}

func decode[T any](t *testing.T, body []byte) (out T) {
	t.Helper()
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	return out
}

// differ reports the entries that two tables do not have alike.
func differ[V any](t *testing.T, place string, theirs, ours map[string]V) {
	t.Helper()
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, there := theirs[name]
		b, here := ours[name]
		if there != here || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %s\n\tKubernetes %s\n\tanykind    %s", place, name, short(a, there), short(b, here))
		}
	}
}

func short(v any, there bool) string {
	if !there {
		return "(none)"
	}
	text, _ := json.Marshal(v)
	return fmt.Sprintf("%.300s", text)
}

func (w world) version(t *testing.T) {
	theirs, ours := w.get(t, "/version", "")
	pick := func(body []byte) map[string]string {
		out := decode[map[string]any](t, body)
		return map[string]string{
			"emulation": fmt.Sprint(out["emulationMajor"], ".", out["emulationMinor"]), "compatible": fmt.Sprint(out["minCompatibilityMajor"], ".", out["minCompatibilityMinor"]),
			"major": fmt.Sprint(out["major"]), "minor": fmt.Sprint(out["minor"]),
		}
	}
	differ(t, "/version", pick(theirs), pick(ours))
}

// gates compares the metric of the gates. A gate that does not change anykind has its default.
func (w world) gates(t *testing.T) {
	theirs, ours := w.get(t, "/metrics", "")
	pick := func(body []byte) map[string]string {
		out := map[string]string{}
		for line := range strings.Lines(string(body)) {
			series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			rest, ok := strings.CutPrefix(series, `kubernetes_feature_enabled{name="`)
			if name, _, _ := strings.Cut(rest, `"`); ok && gate.IdleReason(gate.Name(name)) == "" {
				out[series] = value
			}
		}
		return out
	}
	a, b := pick(theirs), pick(ours)
	if len(a) < 50 {
		t.Errorf("there are only %d gates", len(a))
	}
	differ(t, "/metrics", a, b)
}

// discovery compares the resources of all versions.
func (w world) discovery(t *testing.T) {
	type resources struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version   string
				Resources []map[string]any
			}
		}
	}
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	pick := func(body []byte) map[string]any {
		out := map[string]any{}
		for _, g := range decode[resources](t, body).Items {
			for i, v := range g.Versions {
				at := g.Metadata.Name + "/" + v.Version
				out[at] = i
				for _, r := range v.Resources {
					out[at+"/"+fmt.Sprint(r["resource"])] = r
				}
			}
		}
		return out
	}
	for _, path := range []string{"/api", "/apis"} {
		theirs, ours := w.get(t, path, accept)
		differ(t, path, pick(theirs), pick(ours))
	}
	theirs, ours := w.get(t, "/apis", "application/json")
	differ(t, "/apis", decode[map[string]any](t, theirs), decode[map[string]any](t, ours))
}

// openAPI compares the documents of all versions.
func (w world) openAPI(t *testing.T) {
	type index struct{ Paths map[string]any }
	paths := func(body []byte) map[string]bool {
		out := map[string]bool{}
		for path := range decode[index](t, body).Paths {
			out[path] = true
		}
		return out
	}
	theirs, ours := w.get(t, "/openapi/v3", "")
	list, own := paths(theirs), paths(ours)
	differ(t, "/openapi/v3", list, own)
	for _, path := range slices.Sorted(maps.Keys(list)) {
		if !own[path] {
			continue
		}
		theirs, ours := w.get(t, "/openapi/v3/"+path, "application/json")
		a, b := undescribed(decode[map[string]any](t, theirs)).(map[string]any), undescribed(decode[map[string]any](t, ours)).(map[string]any)
		for _, part := range [][]string{{"info"}, {"paths"}, {"components", "schemas"}} {
			differ(t, path+" "+part[len(part)-1], at(a, part...), at(b, part...))
		}
	}
}

// undescribed removes the descriptions: those of anykind are its own.
func undescribed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, of := range v {
			if _, ok := of.(string); ok && name == "description" {
				delete(v, name)
				continue
			}
			undescribed(of)
		}
	case []any:
		for _, e := range v {
			undescribed(e)
		}
	}
	return v
}

func at(v map[string]any, fields ...string) map[string]any {
	for _, f := range fields {
		v, _ = v[f].(map[string]any)
	}
	return v
}
