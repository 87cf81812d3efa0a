package changes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/change"
)

// A tally counts places, and those that an object confirms.
type tally struct{ places, shown int }

func (t *tally) count(shown bool) {
	t.places++
	if shown {
		t.shown++
	}
}

func (t tally) String() string { return fmt.Sprintf("%4d (%d shown)", t.places, t.shown) }

// The test counts the findings of both, of one only, and those that objects confirm.
func TestPublishedChanges(t *testing.T) {
	for _, p := range pairs() {
		t.Run(strings.ReplaceAll(strings.TrimPrefix(p.module, "github.com/"), "/", "-")+"-"+path.Base(p.was), func(t *testing.T) {
			old, now, err := p.definitions()
			if err != nil {
				t.Fatal(err)
			}
			var both, onlyOurs, onlyTheirs, unnamed, nowhere tally
			for _, was := range old {
				i := slices.IndexFunc(now, func(d *v1.CustomResourceDefinition) bool { return d.Name == was.Name })
				if i < 0 {
					continue
				}
				is := now[i]
				findings := ours(change.Compare(was, is))
				known, unhandled, err := theirs(was, is)
				if err != nil {
					t.Fatal(err)
				}
				places := map[place]bool{}
				for _, of := range []map[place]string{known, unhandled} {
					for at := range of {
						places[at] = true
					}
				}
				for at := range findings {
					places[at] = true
				}
				shown := show(t, was, is, slices.SortedFunc(maps.Keys(places), func(a, b place) int {
					return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.field, b.field))
				}))
				for at := range places {
					mine, by := found(findings, at), known[at] != ""
					switch {
					case mine && by:
						both.count(shown[at] != "")
					case mine && unhandled[at] != "":
						unnamed.count(shown[at] != "")
					case mine:
						onlyOurs.count(shown[at] != "")
						t.Logf("only crd diff: %s %v: %s", was.Name, at, shown[at])
					case by:
						onlyTheirs.count(shown[at] != "")
						t.Logf("only crdify: %s %v %s: %s", was.Name, at, known[at], shown[at])
					default:
						nowhere.count(shown[at] != "" && !foundBelow(findings, at))
					}
				}
			}
			if onlyTheirs.shown+nowhere.shown > 0 {
				t.Error("objects show that something breaks where crd diff finds nothing")
			}
			t.Logf("places where both find something that breaks  %v", both)
			t.Logf("… that crdify calls unhandled, and we by name %v", unnamed)
			t.Logf("… that only crd diff finds                    %v", onlyOurs)
			t.Logf("… that only crdify finds                      %v", onlyTheirs)
			t.Logf("… that crdify calls unhandled, and we safe    %v", nowhere)
		})
	}
}

// found reports whether there is a finding at a place or at one of its parents.
func found(findings map[place][]change.Finding, at place) bool {
	for p := range findings {
		if p.version == at.version && (p.field == at.field || p.field != "^" && strings.HasPrefix(at.field, p.field+".")) {
			return true
		}
	}
	return false
}

// foundBelow reports whether there is a finding below a place.
func foundBelow(findings map[place][]change.Finding, at place) bool {
	for p := range findings {
		if p.version == at.version && strings.HasPrefix(p.field, at.field+".") {
			return true
		}
	}
	return false
}

// show validates objects for each place, and returns the places with a confirmed break.
func show(t *testing.T, was, is *v1.CustomResourceDefinition, places []place) map[place]string {
	t.Helper()
	dir := t.TempDir()
	at := map[string]place{}
	for n, p := range places {
		v, w := versionOf(was, p.version), versionOf(is, p.version)
		if v == nil || w == nil || v.Schema == nil || w.Schema == nil {
			continue
		}
		root, steps := v.Schema.OpenAPIV3Schema, stepsOf(p)
		schema := schemaAt(root, steps)
		if schema == nil {
			continue
		}
		for i, leaf := range candidates(schema, schemaAt(w.Schema.OpenAPIV3Schema, steps)) {
			name := fmt.Sprintf("w-%d-%d", n, i)
			at[name] = p
			obj, _ := with(root, steps, leaf).(map[string]any)
			if obj == nil {
				obj = map[string]any{}
			}
			obj["apiVersion"], obj["kind"], obj["metadata"] = was.Spec.Group+"/"+v.Name, was.Spec.Names.Kind, map[string]any{"name": name, "namespace": "default"}
			if was.Spec.Scope == v1.ClusterScoped {
				obj["metadata"] = map[string]any{"name": name}
			}
			write(t, filepath.Join(dir, "objects", name+".json"), obj)
		}
	}
	if len(at) == 0 {
		return nil
	}
	before, after := answers(t, dir, was), answers(t, dir, is)
	shown := map[place]string{}
	for _, name := range slices.Sorted(maps.Keys(at)) {
		a, b := before[name], after[name]
		if a.Code >= 400 || a.Code == 0 || shown[at[name]] != "" {
			continue
		}
		if b.Code >= 400 {
			var status struct {
				Message string
				Details struct{ Causes []struct{ Field string } }
			}
			_ = json.Unmarshal(b.Body, &status)
			for _, c := range status.Details.Causes {
				if about(c.Field, at[name]) {
					shown[at[name]] = "refused: " + status.Message
				}
			}
			continue
		}
		for _, c := range check.Changes(decoded(t, a.Body), decoded(t, b.Body)) {
			if about(c.Path, at[name]) {
				shown[at[name]] = c.Path + " " + c.String()
			}
		}
	}
	return shown
}

var brackets = regexp.MustCompile(`\[([^]]*)\]`)

// about reports whether a field of an object is at a place, below it, or its parent.
func about(field string, p place) bool {
	field = brackets.ReplaceAllString(field, "")
	at := strings.TrimPrefix(strings.NewReplacer(".items", "", ".additionalProperties", "").Replace(p.field), "^")
	at = strings.TrimPrefix(at, ".")
	around := at[:max(0, strings.LastIndex(at, "."))]
	return field == at || strings.HasPrefix(field, at+".") || field == around && around != ""
}

// answers returns the results for all objects, with a definition.
func answers(t *testing.T, dir string, d *v1.CustomResourceDefinition) map[string]check.Answer {
	t.Helper()
	d = d.DeepCopy()
	d.Status = v1.CustomResourceDefinitionStatus{}
	d.Labels, d.Annotations = nil, map[string]string{"api-approved.kubernetes.io": "https://example.com"} // some are templates
	for i := range d.Spec.Versions {                                                                      // versions that are not served are compared, too
		d.Spec.Versions[i].Served = true
	}
	if d.Spec.Conversion != nil { // no webhook is running
		d.Spec.Conversion = nil
	}
	file := filepath.Join(dir, "definition.json")
	write(t, file, d)
	all := map[string]check.Answer{}
	var mu sync.Mutex
	report, err := check.Run(t.Context(), []string{filepath.Join(dir, "objects")}, nil, check.Options{
		Definitions: []string{file}, Validation: "Ignore",
		Observe: func(q check.Question, a check.Answer) {
			var obj struct{ Metadata struct{ Name string } }
			if json.Unmarshal(q.Body, &obj) == nil {
				mu.Lock()
				defer mu.Unlock()
				all[obj.Metadata.Name] = a
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Summary; s.Unknown > 0 {
		t.Errorf("%s: %v: %s", d.Name, s, report.Results[0].Message)
	}
	return all
}

func decoded(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal(body, &obj); err != nil {
		t.Fatal(err)
	}
	delete(obj, "metadata")
	return obj
}

func write(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func versionOf(d *v1.CustomResourceDefinition, name string) *v1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Name == name {
			return &d.Spec.Versions[i]
		}
	}
	return nil
}
