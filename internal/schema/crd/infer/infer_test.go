package infer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/golden"
)

// Each file of testdata has samples and the inferred definitions. Its comment ends with a line of
// options that differ from the defaults.
func TestInfer(t *testing.T) {
	golden.Each(t, "testdata/*.txtar", func(t *testing.T, archive *golden.Archive) {
		var o Options
		if text := archive.Options(); text != nil {
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
		}
		got := definitions(t, archive.Files[0].Data, o, false)
		if backwards := definitions(t, archive.Files[0].Data, o, true); got != backwards {
			t.Errorf("in another order of samples: %s", cmp.Diff(got, backwards))
		}
		golden.Check(t, &archive.Files[1], got)
	})
}

// definitions returns the definitions of all kinds in a text.
func definitions(t *testing.T, text []byte, o Options, backwards bool) string {
	t.Helper()
	documents := bytes.Split(text, []byte("---\n"))
	if backwards {
		slices.Reverse(documents)
	}
	var s Samples
	for _, document := range documents {
		tree, _, err := codec.Decode(codec.YAML, document)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(tree); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	for i, kind := range s.Kinds() {
		if i > 0 {
			out.WriteString("---\n")
		}
		r := s.Definition(kind, o)
		begin := out.Len()
		if err := r.Write(&out); err != nil {
			t.Fatal(err)
		}
		back := &v1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(out.Bytes()[begin:], back); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(r.Definition)
		b, _ := json.Marshal(back)
		if diff := cmp.Diff(string(a), string(b)); diff != "" {
			t.Errorf("what is written is not what was made: %s", diff)
		}
	}
	return out.String()
}

// Kinds that no definition can define are no samples.
func TestBuiltIn(t *testing.T) {
	for apiVersion, is := range map[string]bool{
		"v1": true, "apps/v1": true, "networking.k8s.io/v1": true, "apiextensions.k8s.io/v1": true, "nogroup/v1": true,
		"example.com/v1": false, "gateway.networking.k8s.io/v1": false, "snapshot.storage.k8s.io/v1": false,
	} {
		var s Samples
		if err := s.Add(map[string]any{"apiVersion": apiVersion, "kind": "Thing"}); (err != nil) != is {
			t.Errorf("%s: %v, want that it is built in: %v", apiVersion, err, is)
		}
	}
}

func TestNames(t *testing.T) {
	for kind, want := range map[string]string{
		"CronTab": "crontabs", "Policy": "policies", "Gateway": "gateways", "Class": "classes", "Status": "statuses", "Redis": "redises",
		"Endpoints": "endpoints", "Analysis": "analyses", "Box": "boxes", "Batch": "batches", "Metadata": "metadata", "Proxy": "proxies", "Alias": "aliases",
	} {
		if got := New(schema.GroupKind{Group: "example.com", Kind: kind}, v1.CustomResourceDefinitionNames{}).Spec.Names.Plural; got != want {
			t.Errorf("plural of %s is %s, want %s", kind, got, want)
		}
	}
	d := New(schema.GroupKind{Group: "example.com", Kind: "Sheep"}, v1.CustomResourceDefinitionNames{Plural: "sheep"})
	if d.Name != "sheep.example.com" || d.Spec.Names.Singular != "sheep" {
		t.Errorf("%s, %s", d.Name, d.Spec.Names.Singular)
	}
}

func TestScope(t *testing.T) {
	meta := func(kv ...string) map[string]any {
		m := map[string]any{"name": "a"}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return map[string]any{"metadata": m}
	}
	for _, tt := range []struct {
		kind  string
		tree  map[string]any
		want  v1.ResourceScope
		guess bool
	}{
		{"Widget", meta("namespace", "prod"), v1.NamespaceScoped, false},
		{"Widget", meta("uid", "123"), v1.ClusterScoped, false}, // a server would have said it
		{"Widget", meta(), v1.NamespaceScoped, true},
		{"ClusterWidget", meta(), v1.ClusterScoped, true},
		{"WidgetClass", meta(), v1.ClusterScoped, true},
		{"Cluster", meta(), v1.NamespaceScoped, true},
		{"ClusterWidget", meta("namespace", "prod"), v1.NamespaceScoped, false},
	} {
		var s Samples
		tt.tree["apiVersion"], tt.tree["kind"] = "example.com/v1", tt.kind
		if err := s.Add(tt.tree); err != nil {
			t.Fatal(err)
		}
		r := s.Definition(s.Kinds()[0], Options{MinSamples: 1})
		if got := r.Definition.Spec.Scope; got != tt.want || len(r.Notes) > 0 != tt.guess {
			t.Errorf("%s %v: %s with %v, want %s", tt.kind, tt.tree["metadata"], got, r.Notes, tt.want)
		}
	}
}

// Fields without number are a map, and the samples are the same in memory however many there are.
func TestManyFields(t *testing.T) {
	var s Samples
	for i := range 3 * mostFields {
		name := "f" + strings.Repeat("x", i%mostFields) + string(rune('a'+i/mostFields))
		if err := s.Add(map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{name: int64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	kind := s.Kinds()[0]
	spec := s.Definition(kind, Options{}).Definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if spec.AdditionalProperties == nil || spec.AdditionalProperties.Schema.Type != "integer" {
		t.Errorf("the spec is %+v", spec)
	}
	if n := len(s.kinds[kind].versions["v1"].object.byName["spec"].object.byName); n > 0 {
		t.Errorf("%d fields are remembered", n)
	}
}
