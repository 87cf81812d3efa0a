package oracle

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/test/compare/servers"
	offline "github.com/anykind/anykind/test/verdict"
)

var (
	reference = flag.String("reference", "", "compare with a kube-apiserver that is started if it is \"start\"")
	verdicts  = flag.Int("verdicts", 5000, "number of verdicts to compare with -reference")
	firstSeed = flag.Uint64("first", 5e6, "first seed of -verdicts")
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	probe           = "probe" // a field that each compared definition has
	storedObjects   = 10      // of each definition
)

// Random creates and updates get the same verdict offline as from a kube-apiserver. The objects that
// are updated were stored before their definition had a schema: rules with oldSelf, ratcheting, pruning
// and defaults meet values of any kind.
func TestVerdictsOfKubeAPIServer(t *testing.T) {
	r := offline.StartReference(t, *reference, "verdicts.txt")
	definitions := 0
	for seed, sum := *firstSeed, (offline.Counts{}); sum.Asked < *verdicts && sum.Different < 10; seed++ {
		counts, ok := (&subject{generator: newGenerator(seed), server: r.Server, dir: t.TempDir(), number: seed}).compare(t)
		if sum = r.Add(counts); ok {
			definitions++
		}
	}
	t.Logf("%d definitions with objects", definitions)
	r.Report(t)
}

// A subject is a random definition with its objects, on a kube-apiserver.
type subject struct {
	generator
	server offline.Server
	dir    string
	number uint64

	ruled      bool // the schema has rules of CEL
	definition check.Answer
}

// compare compares the verdicts on a definition and its objects, and reports whether the definition is
// valid.
func (s *subject) compare(t *testing.T) (offline.Counts, bool) {
	t.Helper()
	props := s.schemaOf(t)
	strict := s.define(props)
	s.write(t, "definition.json", strict)
	s.definition = s.post(t, definitionsPath+"?dryRun=All&fieldManager=anykind&fieldValidation=Strict", strict)
	if s.definition.Code >= http.StatusBadRequest {
		return offline.CompareWith(t, s.answers(), []string{filepath.Join(s.dir, "definition.json")}, check.Options{}), false
	}
	open := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	s.must(t, s.post(t, definitionsPath, s.define(open)))
	if err := servers.Wait(t.Context(), func() bool { return s.send(t, http.MethodGet, s.objects(""), "", nil).Code == http.StatusOK }); err != nil {
		t.Fatal(err)
	}
	stored := s.store(t, props)
	s.tighten(t, strict)
	changed := s.change(t, props, stored)
	for i := range 3 * storedObjects {
		o := s.whole(props, 10)
		if s.ruled {
			o = s.fits(props).(map[string]any)
			if s.one(2) {
				s.disturb(o)
			}
			o["metadata"] = s.metadata()
		}
		if metadata, ok := o["metadata"].(map[string]any); ok && metadata["name"] == nil {
			metadata["name"] = fmt.Sprintf("new-%d", i)
		}
		changed = append(changed, o)
	}
	s.writeObjects(t, changed)
	return offline.CompareWith(t, s.answers(), []string{filepath.Join(s.dir, "changed")}, check.Options{
		Definitions: []string{filepath.Join(s.dir, "definition.json")}, Old: []string{filepath.Join(s.dir, "stored")}, Validation: pick(s.generator, "Strict", "Strict", "Warn", "Ignore"),
	}), true
}

// schemaOf returns a random schema with the field probe.
func (s *subject) schemaOf(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var props *apiextensionsv1.JSONSchemaProps
	if s.ruled = s.one(2); s.ruled {
		props = s.generator.ruled()
		if !s.one(4) {
			props = withoutWrongRules(t, props)
		}
	} else {
		props = s.root()
		s.restrict(props)
		props.Enum, props.AllOf = nil, nil // an error about the whole object would quote its metadata
	}
	props.Properties[probe] = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	return props
}

// withoutWrongRules returns a schema without the rules that are invalid also when they are alone.
func withoutWrongRules(t *testing.T, props *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	right := map[int]bool{}
	all := 0
	keepRules(props.DeepCopy(), &all, func(int) bool { return true })
	for i := range all {
		alone, n := props.DeepCopy(), 0
		keepRules(alone, &n, func(n int) bool { return n == i })
		wrong, _ := upstreamCheck(t, alone)
		right[i] = len(wrong) == 0
	}
	out, n := props.DeepCopy(), 0
	keepRules(out, &n, func(n int) bool { return right[n] })
	return out
}

// keepRules removes rules of a schema. The first rule has the number n.
func keepRules(p *apiextensionsv1.JSONSchemaProps, n *int, keep func(int) bool) {
	p.XValidations = slices.DeleteFunc(p.XValidations, func(apiextensionsv1.ValidationRule) bool {
		*n++
		return !keep(*n - 1)
	})
	for _, name := range sortedProperties(p) {
		sub := p.Properties[name]
		keepRules(&sub, n, keep)
		p.Properties[name] = sub
	}
	if p.Items != nil {
		keepRules(p.Items.Schema, n, keep)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		keepRules(p.AdditionalProperties.Schema, n, keep)
	}
}

func (s *subject) group() string { return fmt.Sprintf("n%d.example.com", s.number) }

// objects returns the path of an object, or of all.
func (s *subject) objects(name string) string {
	return strings.TrimSuffix("/apis/"+s.group()+"/v1/namespaces/default/crontabs/"+name, "/")
}

func (s *subject) define(props *apiextensionsv1.JSONSchemaProps) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "crontabs." + s.group()},
		"spec": map[string]any{
			"group": s.group(), "scope": "Namespaced", "names": map[string]any{"plural": "crontabs", "kind": "CronTab"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": props}}},
		},
	}
}

// store stores objects of a schema that the definition does not have yet, and returns them.
func (s *subject) store(t *testing.T, props *apiextensionsv1.JSONSchemaProps) (stored []map[string]any) {
	t.Helper()
	for i := range storedObjects {
		o := s.fields(props, 4, 15)
		if s.ruled {
			o = s.fits(props).(map[string]any)
		}
		o["apiVersion"], o["kind"] = s.group()+"/v1", "CronTab"
		o["metadata"] = map[string]any{"name": fmt.Sprintf("stored-%d", i)}
		s.must(t, s.post(t, s.objects(""), o))
		stored = append(stored, o)
	}
	return stored
}

// change returns changed versions of stored objects. An object that kube-apiserver cannot read with its
// new schema has none.
func (s *subject) change(t *testing.T, props *apiextensionsv1.JSONSchemaProps, stored []map[string]any) (changed []map[string]any) {
	t.Helper()
	for i, o := range stored {
		name := fmt.Sprintf("stored-%d", i)
		if s.send(t, http.MethodGet, s.objects(name), "", nil).Code != http.StatusOK {
			continue
		}
		s.write(t, filepath.Join("stored", name+".json"), o)
		for range 30 {
			now := runtime.DeepCopyJSON(o)
			if s.one(3) {
				fresh := s.fields(props, 4, 15)
				delete(fresh, "metadata")
				maps.Copy(now, fresh)
			}
			for range s.IntN(4) {
				s.disturb(now)
			}
			if metadata, ok := now["metadata"].(map[string]any); ok {
				metadata["name"] = name
				if s.one(3) {
					metadata["labels"] = map[string]any{pick(s.generator, "a", "b", "-"): pick[any](s.generator, "x", "-", "", int64(1))}
				}
			}
			changed = append(changed, now)
		}
	}
	return changed
}

// tighten gives the stored definition its schema, and waits until kube-apiserver uses it.
func (s *subject) tighten(t *testing.T, strict map[string]any) {
	t.Helper()
	now := maps.Clone(strict) // a merge patch would remove what is null in a default
	now["metadata"] = map[string]any{"name": "crontabs." + s.group(), "resourceVersion": "of the stored one"}
	s.must(t, s.send(t, http.MethodPut, definitionsPath+"/crontabs."+s.group(), "application/json", []byte(text(now))))
	wrong := map[string]any{"apiVersion": s.group() + "/v1", "kind": "CronTab", "metadata": map[string]any{"name": "probe"}, probe: "no boolean"}
	err := servers.Wait(t.Context(), func() bool {
		a := s.post(t, s.objects("")+"?dryRun=All", wrong)
		return a.Code == http.StatusUnprocessableEntity && bytes.Contains(a.Body, []byte(probe))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// writeObjects writes objects for the command: as JSON, or as one file of YAML.
func (s *subject) writeObjects(t *testing.T, all []map[string]any) {
	t.Helper()
	s.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	var file bytes.Buffer
	asYAML := s.one(2)
	for i, o := range all {
		o["apiVersion"], o["kind"] = s.group()+"/v1", "CronTab"
		if !asYAML {
			s.write(t, filepath.Join("changed", fmt.Sprintf("%05d.json", i)), o)
			continue
		}
		fmt.Fprintf(&file, "---\n%s\n", text(o))
	}
	if asYAML {
		offline.WriteFile(t, filepath.Join(s.dir, "changed", "all.yaml"), file.Bytes())
	}
}

func (s *subject) write(t *testing.T, name string, v any) {
	t.Helper()
	offline.WriteFile(t, filepath.Join(s.dir, name), []byte(text(v)))
}

// answers returns the kube-apiserver. The answer about the definition is the one from before the definition was stored.
func (s *subject) answers() offline.Server {
	server := s.server
	server.Ask = func(ctx context.Context, q check.Question) (check.Answer, error) {
		if q.Method == http.MethodPost && strings.HasPrefix(q.Path, definitionsPath) {
			return s.definition, nil
		}
		return s.server.Ask(ctx, q)
	}
	return server
}

func (s *subject) send(t *testing.T, method, path, contentType string, body []byte) check.Answer {
	t.Helper()
	a, err := s.server.Ask(t.Context(), check.Question{Method: method, Path: path, ContentType: contentType, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *subject) post(t *testing.T, path string, v any) check.Answer {
	t.Helper()
	return s.send(t, http.MethodPost, path, "application/json", []byte(text(v)))
}

func (s *subject) must(t *testing.T, a check.Answer) {
	t.Helper()
	if a.Code >= http.StatusBadRequest {
		t.Fatalf("seed %d: %d %s", s.number, a.Code, a.Body)
	}
}
