package oracle

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Published definitions, with generated objects and mutations of them.
func TestCorpusValidate(t *testing.T) {
	var n tally
	for i, crd := range definitions(t) {
		for _, version := range crd.Spec.Versions {
			props := version.Schema.OpenAPIV3Schema
			v := newValidators(t, props)
			v.props = &apiextensionsv1.JSONSchemaProps{} // too long to print
			g := newGenerator(uint64(i))
			for range volume(6) {
				old := g.whole(props, 50)
				v.ours.Default(old)
				obj := runtime.DeepCopyJSON(old)
				for range 1 + g.IntN(8) {
					g.scatter(props, obj)
				}
				if n.compare(t, v, old, obj); t.Failed() {
					t.Fatalf("%s/%s", crd.Name, version.Name)
				}
			}
		}
	}
	n.log(t)
}

// The published objects of the Gateway API, and mutations of them.
func TestCorpusValidateObjects(t *testing.T) {
	var n tally
	g := newGenerator(0)
	corpusObjects(t, func(path string, props *apiextensionsv1.JSONSchemaProps, old map[string]any) {
		v := newValidators(t, props)
		v.props = &apiextensionsv1.JSONSchemaProps{}
		v.ours.Prune(old)
		v.ours.Default(old)
		n.compare(t, v, map[string]any{}, old)
		for range 30 {
			obj := runtime.DeepCopyJSON(old)
			for range 1 + g.IntN(4) {
				g.scatter(props, obj)
			}
			if n.compare(t, v, old, obj); t.Failed() {
				t.Fatal(path)
			}
		}
	})
	n.log(t)
}
