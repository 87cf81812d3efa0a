package celrule

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/objecttest"
)

// schemaOf returns the schema of a resource that has the properties.
func schemaOf(t testing.TB, properties string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	p := &apiextensionsv1.JSONSchemaProps{Type: "object"}
	read(t, properties, &p.Properties)
	return p
}

// withRule adds a rule to the schema at a path, such as spec.items: items stands for the elements of a
// list, entries for those of a map, and "" for the root.
func withRule(t testing.TB, p *apiextensionsv1.JSONSchemaProps, path string, r apiextensionsv1.ValidationRule) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	if path == "" {
		p.XValidations = append(p.XValidations, r)
		return p
	}
	name, rest, _ := strings.Cut(path, ".")
	switch {
	case name == "items" && p.Items != nil:
		withRule(t, p.Items.Schema, rest, r)
	case name == "entries" && p.AdditionalProperties != nil:
		withRule(t, p.AdditionalProperties.Schema, rest, r)
	default:
		sub, ok := p.Properties[name]
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		p.Properties[name] = *withRule(t, &sub, rest, r)
	}
	return p
}

// accepted fails unless the rules of a schema can be stored.
func accepted(t testing.TB, p *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	for _, err := range refusals(p) {
		t.Error(err)
	}
}

func refusals(p *apiextensionsv1.JSONSchemaProps) []string {
	return words(Check(p, field.NewPath("schema"), CheckOptions{}).Errors)
}

// validate returns the errors of the rules for an object and the object that it replaces, which may be
// "".
func validate(t testing.TB, p *apiextensionsv1.JSONSchemaProps, now, was string) []string {
	t.Helper()
	rules, err := New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return words(rules.Validate(context.Background(), objecttest.Tree(t, now), objecttest.Tree(t, was), Options{Update: true}))
}

func words(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func read(t testing.TB, text string, into any) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
