package verdict

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/crdtest"
	"github.com/anykind/anykind/internal/schema/crd/example"
	"github.com/anykind/anykind/internal/schema/crd/infer"
	"github.com/anykind/anykind/internal/schema/crd/markdown"
	"github.com/anykind/anykind/test/corpus"
	"github.com/anykind/anykind/test/program"
)

var allProjects = flag.Bool("projects", false, "infer definitions from the samples of all published projects")

// Definitions that are inferred from published objects accept these objects. The test measures their
// similarity to the published definitions.
func TestInfer(t *testing.T) {
	projects := []string{"github.com/cert-manager/cert-manager", "sigs.k8s.io/gateway-api"}
	floor := &Agreement{
		Kinds: 12, Samples: 103, Names: 12, Fields: 325, Types: 325,
		Required: Share{Both: 33, Ours: 3}, Enums: Share{Both: 1}, Lists: Share{Both: 2},
	}
	if *allProjects {
		projects = nil
		floor = &Agreement{
			Kinds: 143, Samples: 2484, Names: 115, Fields: 4989, Types: 4866,
			Required: Share{Both: 435, Ours: 310}, Enums: Share{Both: 15, Ours: 16}, Lists: Share{Both: 17, Ours: 42}, Formats: Share{Both: 11, Ours: 10},
		}
	}
	modules, err := program.Published("test/operators/published", projects...)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString(agreementHead)
	sum := &Agreement{}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		definitions, samples := published(t, modules[path].Dir)
		if len(samples) == 0 {
			continue
		}
		a := agreement(t, definitions, samples)
		table.WriteString(a.row(path))
		sum.add(a)
		for _, line := range a.differ {
			t.Log(line)
		}
	}
	table.WriteString(sum.row("all"))
	t.Logf("\n%s", table.String())
	for _, worse := range sum.below(floor) {
		t.Error(worse)
	}
}

// agreement compares published definitions with ones inferred from the samples that they accept.
func agreement(t *testing.T, definitions map[string]*v1.CustomResourceDefinition, samples []object.Tree) *Agreement {
	t.Helper()
	var theirs []*v1.CustomResourceDefinition
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		theirs = append(theirs, definitions[name])
	}
	accepts, err := check.Accepts(t.Context(), theirs, samples)
	if err != nil {
		t.Fatal(err)
	}
	var right []object.Tree
	var seen infer.Samples
	for i, s := range samples {
		if !accepts[i] {
			continue
		}
		right = append(right, s)
		if err := seen.Add(s); err != nil {
			t.Error(err)
		}
	}
	a := &Agreement{Samples: len(right)}
	var ours []*v1.CustomResourceDefinition
	for _, kind := range seen.Kinds() {
		d := seen.Definition(kind, infer.Options{}).Definition
		ours = append(ours, d)
		for _, published := range theirs {
			if published.Spec.Group == kind.Group && published.Spec.Names.Kind == kind.Kind {
				a.definition(d, published)
			}
		}
	}
	report, err := check.Verify(t.Context(), ours, check.TheseSamples(right), check.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) > 0 || report.Summary.Accepted != len(right) {
		var out bytes.Buffer
		_ = report.WriteText(&out)
		t.Errorf("samples do not pass what is inferred from them:\n%s", out.String())
	}
	return a
}

// Every published definition has a page, and most have an example that a server accepts: the generator
// cannot satisfy all rules.
func TestDocs(t *testing.T) {
	var trees []map[string]any
	for _, folder := range []corpus.Folder{corpus.GatewayAPIExperimental, corpus.CertManager} {
		published, err := folder.Definitions()
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, published...)
	}
	trees = append(trees, crdtest.Provider()[:10]...)
	var definitions []*v1.CustomResourceDefinition
	var candidates []object.Tree
	versions := map[string]bool{}
	for _, tree := range trees {
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		d := &v1.CustomResourceDefinition{}
		if err := json.Unmarshal(text, d); err != nil {
			t.Fatal(err)
		}
		definitions = append(definitions, d)
		for i := range d.Spec.Versions {
			if v := &d.Spec.Versions[i]; v.Served {
				candidates = append(candidates, example.Of(d, v)...)
				versions[d.Spec.Group+"/"+v.Name+" "+d.Spec.Names.Kind] = true
			}
		}
	}
	accepts, err := check.Accepts(t.Context(), definitions, candidates)
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]bool{}
	for i, tree := range candidates {
		if accepts[i] {
			examples[object.APIVersion(tree)+" "+object.Kind(tree)] = true
		}
	}
	var page bytes.Buffer
	if err := markdown.Write(&page, definitions, func(*v1.CustomResourceDefinition, string) map[string]any { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d definitions, %d bytes; of %d versions %d have an example", len(definitions), page.Len(), len(versions), len(examples))
	for version := range versions {
		if !examples[version] {
			t.Log("without example: ", version)
		}
	}
	if len(examples)*10 < len(versions)*9 {
		t.Errorf("of %d versions only %d have an example", len(versions), len(examples))
	}
	places := map[string]bool{}
	for _, rest := range strings.Split(page.String(), `<a id="`)[1:] {
		name, _, _ := strings.Cut(rest, `"`)
		if places[name] {
			t.Errorf("two places are called %s", name)
		}
		places[name] = true
	}
	for _, rest := range strings.Split(page.String(), "](#")[1:] {
		if name, _, _ := strings.Cut(rest, ")"); !places[name] {
			t.Errorf("a link leads to %s, which is not there", name)
		}
	}
}

// published returns the definitions in a folder, and the objects of their kinds.
func published(t *testing.T, dir string) (definitions map[string]*v1.CustomResourceDefinition, samples []object.Tree) {
	t.Helper()
	var objects []object.Tree
	seen := map[string]bool{}
	definitions = map[string]*v1.CustomResourceDefinition{}
	versions := map[string]bool{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".yaml" && filepath.Ext(file) != ".yml" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for text := range strings.SplitSeq("\n"+string(data), "\n---") {
			if !strings.Contains(text, "\nkind:") || seen[text] {
				continue
			}
			seen[text] = true
			tree, _, err := codec.Decode(codec.YAML, []byte(text))
			if err != nil {
				continue // a template
			}
			if object.Kind(tree) != "CustomResourceDefinition" {
				objects = append(objects, tree)
				continue
			}
			c := &v1.CustomResourceDefinition{}
			if yaml.Unmarshal([]byte(text), c) != nil || definitions[c.Name] != nil || object.APIVersion(tree) != "apiextensions.k8s.io/v1" {
				continue
			}
			c.Spec.Conversion = nil
			definitions[c.Name] = c
			for _, v := range c.Spec.Versions {
				if v.Served && v.Schema != nil {
					versions[c.Spec.Group+"/"+v.Name+" "+c.Spec.Names.Kind] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	once := map[string]bool{}
	for _, o := range objects {
		text, _ := json.Marshal(o)
		if versions[object.APIVersion(o)+" "+object.Kind(o)] && !once[string(text)] {
			once[string(text)] = true
			samples = append(samples, o)
		}
	}
	return definitions, samples
}
