package oracle

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"

	"github.com/anykind/anykind/internal/schema"
)

// The published models of a definition, its list and all their references.
func TestCorpusModel(t *testing.T) {
	for _, crd := range definitions(t) {
		compareModels(t, crd)
		if t.Failed() {
			t.Fatal(crd.Name)
		}
	}
}

func TestRandomModel(t *testing.T) {
	for seed := range uint64(volume(300)) {
		g := newGenerator(seed)
		props := g.root()
		if g.one(3) {
			g.spoil(props)
		}
		compareModels(t, definition(props))
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, text(props))
		}
	}
}

// A root that is marked as an embedded object has the descriptions of one.
func TestModelOfAnEmbeddedRoot(t *testing.T) {
	compareModels(t, definition(&apiextensionsv1.JSONSchemaProps{
		Type: "object", XEmbeddedResource: true, Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "string"}},
	}))
}

// definition returns a CustomResourceDefinition with one version of the schema.
func definition(props *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "crontabs.stable.example.com"
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: kind.Group,
		Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: kind.Plural, Singular: "crontab", Kind: kind.Kind, ListKind: kind.ListKind},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: kind.Version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
		}},
	}
	return crd
}

func compareModels(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, v := range crd.Spec.Versions {
		published, err := builder.BuildOpenAPIV3(crd, v.Name, builder.Options{IncludeSelectableFields: true})
		if err != nil {
			t.Fatal(err)
		}
		props := v.Schema.OpenAPIV3Schema
		model := schema.Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) { return props, nil }, kindOf(crd, &v)).Model()
		for _, name := range []string{model.Name, model.List} {
			if published.Components.Schemas[name] == nil {
				t.Errorf("upstream has no model %s", name)
			}
		}
		for name, s := range model.Schemas {
			got, want := plain(t, s), plain(t, published.Components.Schemas[name])
			// Upstream's description of this type is not in its Go documentation; ours has our own
			// words.
			if name == "io.k8s.apimachinery.pkg.apis.meta.v1.Time" {
				delete(want.(map[string]any), "description")
				delete(got.(map[string]any), "description")
			}
			same(t, nil, name, "model", got, want)
		}
	}
}

// plain returns v as decoded JSON.
func plain(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
