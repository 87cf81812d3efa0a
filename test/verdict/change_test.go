package verdict

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/change"
)

// The findings of internal/schema/crd/change match the behaviour of a server: whether it rejects an
// object after the change in a create, and in an update of only an annotation.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name, old, now string // schemas of spec
		spec           string
		change         string
	}{
		{"type", "{type: string}", "{type: integer}", `x`, "type-changed"},
		{"embedded", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}", `{a: b}`, "embedded-resource-added"},
		{"required", "{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}", `{}`, "field-required"},
		{"rule of an object", "{type: object, properties: {a: {type: integer}}}", "{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 3}]}", `{a: 1}`, "rule-added"},
		{"keys of a list", "{type: array, items: {type: object, properties: {a: {type: string}}}}", "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], properties: {a: {type: string}}}}", `[{a: b}, {a: b}]`, "list-type-changed"},
		{"enum", "{type: string}", "{type: string, enum: [a]}", `b`, "enum-added"},
		{"value", "{type: string, enum: [a, b]}", "{type: string, enum: [a]}", `b`, "enum-value-removed"},
		{"maximum", "{type: integer}", "{type: integer, maximum: 1}", `2`, "maximum-tightened"},
		{"minimum", "{type: integer, minimum: 1}", "{type: integer, minimum: 3}", `2`, "minimum-tightened"},
		{"exclusive", "{type: integer, maximum: 2}", "{type: integer, maximum: 2, exclusiveMaximum: true}", `2`, "exclusiveMaximum-tightened"},
		{"multiple", "{type: integer}", "{type: integer, multipleOf: 2}", `3`, "multipleOf-tightened"},
		{"length", "{type: string}", "{type: string, maxLength: 1}", `xx`, "maxLength-tightened"},
		{"items", "{type: array, items: {type: string}}", "{type: array, maxItems: 1, items: {type: string}}", `[a, b]`, "maxItems-tightened"},
		{"element", "{type: array, items: {type: string}}", "{type: array, items: {type: string, maxLength: 1}}", `[aa]`, "maxLength-tightened"},
		{"keys", "{type: object, additionalProperties: {type: string}}", "{type: object, minProperties: 2, additionalProperties: {type: string}}", `{a: b}`, "minProperties-tightened"},
		{"pattern", "{type: string}", "{type: string, pattern: ^a$}", `b`, "pattern-changed"},
		{"format", "{type: string}", "{type: string, format: ipv4}", `b`, "format-changed"},
		{"set", "{type: array, items: {type: string}}", "{type: array, x-kubernetes-list-type: set, items: {type: string}}", `[a, a]`, "list-type-changed"},
		{"rule", "{type: string}", `{type: string, x-kubernetes-validations: [{rule: self == "a"}]}`, `b`, "rule-added"},
		{"another rule", `{type: string, x-kubernetes-validations: [{rule: self == "b"}]}`, `{type: string, x-kubernetes-validations: [{rule: self == "a"}]}`, `b`, "rule-changed"},
		{"allOf", "{type: string}", "{type: string, allOf: [{maxLength: 1}]}", `bb`, "allOf-changed"},
		{"anyOf", "{type: string}", "{type: string, anyOf: [{maxLength: 1}]}", `bb`, "anyOf-changed"},
		{"oneOf", "{type: string}", "{type: string, oneOf: [{maxLength: 1}]}", `bb`, "oneOf-changed"},
		{"not", "{type: string}", "{type: string, not: {minLength: 1}}", `bb`, "not-changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, now := definition(t, c.old), definition(t, c.now)
			var found *change.Finding
			for _, f := range change.Compare(old, now) {
				if f.Change == c.change {
					found = &f
				}
			}
			if found == nil || found.Severity != change.Breaking || found.Ratcheting == "" {
				t.Fatalf("%v, want that %s is breaking", change.Compare(old, now), c.change)
			}
			if verdictOf(t, old, c.spec, false) != check.Accepted {
				t.Fatal("the object is wrong before the change")
			}
			if got := verdictOf(t, now, c.spec, false); got != check.Refused {
				t.Errorf("a new object is %s, want it refused", got)
			}
			want := check.Accepted // the value stays, and so does everything around it
			if found.Ratcheting == change.NeverSaves {
				want = check.Refused
			}
			if got := verdictOf(t, now, c.spec, true); got != want {
				t.Errorf("ratcheting %s it, but the update is %s", found.Ratcheting, got)
			}
		})
	}
}

// definition returns a definition with a schema of spec.
func definition(t *testing.T, spec string) *v1.CustomResourceDefinition {
	t.Helper()
	d := &v1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {x: `+spec+`}}}}}
`), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// verdictOf returns the verdict on a create of an object, or on an update of a stored one.
func verdictOf(t *testing.T, d *v1.CustomResourceDefinition, x string, stored bool) check.Verdict {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	object := "apiVersion: example.com/v1\nkind: CronTab\nmetadata: {name: a, namespace: default}\nspec: {x: " + x + "}\n"
	changed := file(t, dir, "new.yaml", strings.Replace(object, "default}", "default, annotations: {touched: yes-it-is}}", 1))
	o := check.Options{Definitions: []string{file(t, dir, "crd.json", string(text))}}
	if stored {
		o.Old = []string{file(t, dir, "old.yaml", object)}
	}
	report, err := check.Run(t.Context(), []string{changed}, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 1 || report.Results[0].Update != stored {
		t.Fatalf("%+v", report.Results)
	}
	return report.Results[0].Verdict
}
