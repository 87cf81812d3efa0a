package oracle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/schema"
)

// corpus is where published definitions and objects are, if they are.
const corpus = "../../../shared/corpus"

// documents calls visit for every YAML document below a folder of the corpus.
func documents(t testing.TB, folder string, visit func(path, document string)) {
	t.Helper()
	root := filepath.Join(corpus, folder)
	if _, err := os.Stat(root); err != nil {
		t.Skip("no corpus here")
	}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq("\n"+string(data), "\n---") {
			if strings.TrimSpace(document) != "" {
				visit(path, document)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// definitions returns the CustomResourceDefinitions of the corpus.
func definitions(t testing.TB) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range []string{"gateway-api/crds", "cert-manager", "provider-aws"} {
		documents(t, folder, func(path, document string) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal([]byte(document), crd); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if crd.Kind == "CustomResourceDefinition" {
				apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
				apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
				out = append(out, crd)
			}
		})
	}
	if len(out) == 0 {
		t.Fatal("the corpus has no definitions")
	}
	return out
}

func kindOf(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) schema.Kind {
	k := schema.Kind{
		Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind, ListKind: crd.Spec.Names.ListKind, Plural: crd.Spec.Names.Plural,
	}
	for _, f := range v.SelectableFields {
		k.SelectableFields = append(k.SelectableFields, f.JSONPath)
	}
	return k
}

// Published definitions, with objects made up from them.
func TestCorpusComplete(t *testing.T) {
	for i, crd := range definitions(t) {
		for _, v := range crd.Spec.Versions {
			props := v.Schema.OpenAPIV3Schema
			upstream, err := NewUpstream(props)
			if err != nil {
				t.Fatalf("%s: %v", crd.Name, err)
			}
			ours, err := schema.Parse(props, kindOf(crd, &v))
			if err != nil {
				t.Fatalf("%s: %v", crd.Name, err)
			}
			g := newGenerator(uint64(i))
			for range 10 {
				if compare(t, upstream, ours, &apiextensionsv1.JSONSchemaProps{}, g.whole(props, 20)); t.Failed() {
					t.Fatalf("%s/%s", crd.Name, v.Name)
				}
			}
		}
	}
}

// The objects that come with the definitions of the Gateway API.
func TestCorpusObjects(t *testing.T) {
	compared := 0
	corpusObjects(t, func(path string, props *apiextensionsv1.JSONSchemaProps, obj map[string]any) {
		upstream, err := NewUpstream(props)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		ours, err := schema.Parse(props, kind)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		compare(t, upstream, ours, &apiextensionsv1.JSONSchemaProps{}, obj)
		compared++
	})
	t.Logf("%d objects", compared)
}

// corpusObjects calls visit for every object of the Gateway API with its schema.
func corpusObjects(t testing.TB, visit func(path string, props *apiextensionsv1.JSONSchemaProps, obj map[string]any)) {
	t.Helper()
	type version struct{ apiVersion, kind string }
	schemas := map[version]*apiextensionsv1.JSONSchemaProps{}
	for _, crd := range definitions(t) {
		for _, v := range crd.Spec.Versions {
			schemas[version{crd.Spec.Group + "/" + v.Name, crd.Spec.Names.Kind}] = v.Schema.OpenAPIV3Schema
		}
	}
	for _, folder := range []string{"gateway-api/valid", "gateway-api/invalid"} {
		documents(t, folder, func(path, document string) {
			data, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				return
			}
			var obj map[string]any
			if err := utiljson.Unmarshal(data, &obj); err != nil || obj == nil {
				return
			}
			apiVersion, _ := obj["apiVersion"].(string)
			k, _ := obj["kind"].(string)
			if props := schemas[version{apiVersion, k}]; props != nil {
				visit(path, props, obj)
			}
		})
	}
}
