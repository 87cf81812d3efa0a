package oracle

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/test/corpus"
)

// definitions returns the published definitions to compare: all, or every third one with -short.
func definitions(t testing.TB) (some []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for i, crd := range allDefinitions(t) {
		if !testing.Short() || i%3 == 0 {
			some = append(some, crd)
		}
	}
	return some
}

// allDefinitions returns the CustomResourceDefinitions of the corpus, and those of both
// channels of the Gateway API.
func allDefinitions(t testing.TB) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := corpus.GatewayAPIStandard.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	more, err := corpus.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, d := range append(all, more...) {
		out = append(out, typed(t, d))
	}
	return out
}

// typed returns a definition as a server decodes it.
func typed(t testing.TB, definition map[string]any) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(data, crd); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	return crd
}

func kindOf(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) model.Kind {
	k := model.Kind{
		Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind, ListKind: crd.Spec.Names.ListKind, Plural: crd.Spec.Names.Plural,
	}
	for _, f := range v.SelectableFields {
		k.SelectableFields = append(k.SelectableFields, f.JSONPath)
	}
	return k
}

// kindSaid returns the kind in an object.
func kindSaid(obj map[string]any) model.Kind {
	gvk := (&unstructured.Unstructured{Object: obj}).GroupVersionKind()
	return model.Kind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, ListKind: gvk.Kind + "List"}
}

// Published definitions, with objects generated from their schemas.
func TestCorpusComplete(t *testing.T) {
	for i, crd := range definitions(t) {
		for _, v := range crd.Spec.Versions {
			props := v.Schema.OpenAPIV3Schema
			upstream, err := NewUpstream(props)
			if err != nil {
				t.Fatalf("%s: %v", crd.Name, err)
			}
			k := kindOf(crd, &v)
			ours, err := schema.Parse(props, k)
			if err != nil {
				t.Fatalf("%s: %v", crd.Name, err)
			}
			g := newGenerator(uint64(i))
			for range volume(10) {
				obj := g.whole(props, 20)
				obj["apiVersion"], obj["kind"] = k.Group+"/"+k.Version, k.Kind
				if compare(t, upstream, ours, &apiextensionsv1.JSONSchemaProps{}, obj); t.Failed() {
					t.Fatalf("%s/%s", crd.Name, v.Name)
				}
			}
		}
	}
}

// The published objects of the Gateway API.
func TestCorpusObjects(t *testing.T) {
	compared := 0
	corpusObjects(t, func(path string, props *apiextensionsv1.JSONSchemaProps, obj map[string]any) {
		upstream, err := NewUpstream(props)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		ours, err := schema.Parse(props, kindSaid(obj))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		compare(t, upstream, ours, &apiextensionsv1.JSONSchemaProps{}, obj)
		compared++
	})
	t.Logf("%d objects", compared)
}

// corpusObjects calls visit for every object of the Gateway API with its schema, or for every third one
// with -short.
func corpusObjects(t testing.TB, visit func(path string, props *apiextensionsv1.JSONSchemaProps, obj map[string]any)) {
	t.Helper()
	type version struct{ apiVersion, kind string }
	schemas := map[version]*apiextensionsv1.JSONSchemaProps{}
	for _, crd := range allDefinitions(t) {
		for _, v := range crd.Spec.Versions {
			schemas[version{crd.Spec.Group + "/" + v.Name, crd.Spec.Names.Kind}] = v.Schema.OpenAPIV3Schema
		}
	}
	visited := 0
	for _, folder := range []corpus.Folder{corpus.GatewayAPIValid, corpus.GatewayAPIInvalid} {
		err := folder.Documents(func(file, document string) error {
			data, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				return nil // no client could send it
			}
			var obj map[string]any
			if err := utiljson.Unmarshal(data, &obj); err != nil || obj == nil {
				return nil
			}
			apiVersion, _ := obj["apiVersion"].(string)
			k, _ := obj["kind"].(string)
			if props := schemas[version{apiVersion, k}]; props != nil {
				if !testing.Short() || visited%3 == 0 {
					visit(file, props, obj)
				}
				visited++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if visited == 0 {
		t.Fatal("no objects of the Gateway API")
	}
}
