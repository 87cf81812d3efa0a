// Package schematest reads schemas and objects from YAML, and compares objects, for tests.
//
// It is for the tests of the packages around schemas and imports none of them.
package schematest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Props reads a schema. Tabs count as two blanks.
func Props(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	out := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "\t", "  ")), out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

// OfSpec parses a schema of spec only.
func OfSpec(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": *Props(t, text),
	}}
}

// Tree reads an object.
func Tree(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Equal compares.
func Equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
