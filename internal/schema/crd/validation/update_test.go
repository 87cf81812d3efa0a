package validation_test

import (
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/schema/crd/validation"
)

// Some rules are newer than stored definitions. A definition that breaks one may be written again
// unchanged; a changed one is rejected. Breaking any other rule is always rejected.
func TestStoredMistakes(t *testing.T) {
	x := func(schema string) func(*v1.CustomResourceDefinition) {
		return func(c *v1.CustomResourceDefinition) {
			c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["x"] = props(t, schema)
		}
	}
	loose := func(change func(*v1.CustomResourceDefinition)) func(*v1.CustomResourceDefinition) {
		return func(c *v1.CustomResourceDefinition) {
			c.Spec.PreserveUnknownFields = true
			delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "status") // extensions ask for a structure
			change(c)
		}
	}
	webhook := func(change func(*v1.WebhookConversion)) func(*v1.CustomResourceDefinition) {
		return func(c *v1.CustomResourceDefinition) {
			url := "https://a.example.com"
			w := &v1.WebhookConversion{ClientConfig: &v1.WebhookClientConfig{URL: &url}, ConversionReviewVersions: []string{"v1"}}
			change(w)
			c.Spec.Conversion = &v1.CustomResourceConversion{Strategy: v1.WebhookConverter, Webhook: w}
		}
	}
	for _, tt := range []struct {
		name    string
		mistake func(*v1.CustomResourceDefinition)
		wrong   string // expected error
		stays   bool
	}{
		{"unknown fields are kept", loose(func(*v1.CustomResourceDefinition) {}), "spec.preserveUnknownFields: Invalid value: true: cannot set to true", true},
		{"no schema", loose(func(c *v1.CustomResourceDefinition) { c.Spec.Versions[0].Schema = nil }), "spec.versions[0].schema.openAPIV3Schema: Required value", true},
		{"not structural", loose(x(`{}`)), "properties[x].type: Required value: must not be empty for specified object fields", true},
		{"not structural, beside extensions", func(c *v1.CustomResourceDefinition) { c.Spec.PreserveUnknownFields = true; x(`{}`)(c) }, "properties[x].type: Required value: must not be empty for specified object fields", false},
		{"not structural, but pruned", x(`{}`), "properties[x].type: Required value: must not be empty for specified object fields", false},
		{"a type that there is not", x(`{type: foo}`), `properties[x].type: Unsupported value: "foo"`, true},
		{"a default with unknown fields", x(`{type: object, properties: {a: {type: string}}, default: {b: 1}}`), "properties[x].default: Invalid value", true},
		{"a default that is not valid", x(`{type: string, default: 1}`), "properties[x].default: Invalid value", false},
		{"a set of granular objects", x(`{type: array, x-kubernetes-list-type: set, items: {type: object}}`), "properties[x].items.x-kubernetes-map-type: Invalid value", true},
		{"a set of granular lists", x(`{type: array, x-kubernetes-list-type: set, items: {type: array, items: {type: string}, x-kubernetes-list-type: set}}`), "properties[x].items.x-kubernetes-list-type: Invalid value", true},
		{"a key that may be left out", x(`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}`), "properties[x].items.properties[k].default: Required value", true},
		{"an item that may be null", x(`{type: array, x-kubernetes-list-type: set, items: {type: string, nullable: true}}`), "properties[x].items.nullable: Forbidden", true},
		{"a pattern that does not compile", x(`{type: string, pattern: "("}`), "properties[x].pattern: Invalid value", false},
		{"a rule that costs too much", x(`{type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(a, self.exists(b, a == b))"}]}`), "estimated rule cost exceeds budget", false},
		{"a rule that does not compile", x(`{type: string, x-kubernetes-validations: [{rule: "self =="}]}`), "x-kubernetes-validations[0].rule: Invalid value", false},
		{"a rule of the items of a wrong list", x(`{type: array, x-kubernetes-list-type: map, items: {type: string, x-kubernetes-validations: [{rule: "self =="}]}}`), "items.x-kubernetes-validations[0].rule: Invalid value", false},
		{"no review version", webhook(func(w *v1.WebhookConversion) { w.ConversionReviewVersions = []string{"v7"} }), "spec.conversion.conversionReviewVersions: Invalid value", true},
		{"a CA bundle that is none", webhook(func(w *v1.WebhookConversion) { w.ClientConfig.CABundle = []byte("x") }), "spec.conversion.webhookClientConfig.caBundle: Invalid value", true},
		{"too many selectable fields", func(c *v1.CustomResourceDefinition) {
			for _, name := range strings.Split("abcdefghi", "") {
				c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[name] = props(t, `{type: string}`)
				c.Spec.Versions[0].SelectableFields = append(c.Spec.Versions[0].SelectableFields, v1.SelectableField{JSONPath: "." + name})
			}
		}, "spec.selectableFields: Too many: 9: must have at most 8 items", true},
		{"a selectable field that is not there", func(c *v1.CustomResourceDefinition) {
			c.Spec.Versions[0].SelectableFields = []v1.SelectableField{{JSONPath: ".nowhere"}}
		}, "spec.selectableFields[0].jsonPath: Invalid value", false},
		{"a selectable field of what cannot be compiled", func(c *v1.CustomResourceDefinition) {
			x(`{type: object, patternProperties: {a: {type: string}}}`)(c)
			c.Spec.Versions[0].SelectableFields = []v1.SelectableField{{JSONPath: ".spec.size"}}
		}, `spec.schema.openAPIV3Schema: Invalid value: "": OpenAPIV3Schema 'patternProperties' is not supported`, false},
		{"a scale path that leads elsewhere", func(c *v1.CustomResourceDefinition) {
			c.Spec.Versions[0].Subresources.Scale = &v1.CustomResourceSubresourceScale{SpecReplicasPath: ".x", StatusReplicasPath: ".status.x"}
		}, "spec.subresources.scale.specReplicasPath: Invalid value", false},
		{"a default where unknown fields are kept", loose(x(`{type: string, default: a}`)), "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults", false},
		{"a default that is hidden where unknown fields are kept", loose(x(`{type: array, items: [{type: string, default: a}]}`)), "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			good := widgets(t)
			bad := good.DeepCopy()
			tt.mistake(bad)
			again := bad.DeepCopy()
			again.Spec.Versions[0].Schema = again.Spec.Versions[0].Schema.DeepCopy()
			if s := again.Spec.Versions[0].Schema; s != nil {
				s.OpenAPIV3Schema.Description = "a change elsewhere"
			}
			if errs := wrongWith(t, bad, good); !strings.Contains(errs, tt.wrong) {
				t.Errorf("in place of what is right: %s\nwant %s", errs, tt.wrong)
			}
			if errs := wrongWith(t, again, bad); strings.Contains(errs, tt.wrong) == tt.stays {
				t.Errorf("in place of itself: %s", errs)
			}
		})
	}
}

// The cost limit of a rule applies again once the schema of its version changes. A renamed version has
// the schema common to all versions.
func TestStoredCosts(t *testing.T) {
	costly := widgets(t)
	costly.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["x"] = props(t,
		`{type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(a, self.exists(b, a == b))"}]}`)
	const wrong = "estimated rule cost exceeds budget"
	for _, tt := range []struct {
		name   string
		change func(*v1.CustomResourceDefinition)
		stays  bool
	}{
		{"nothing", func(*v1.CustomResourceDefinition) {}, true},
		{"a label", func(c *v1.CustomResourceDefinition) { c.Labels = map[string]string{"a": "b"} }, true},
		{"the name of the version", func(c *v1.CustomResourceDefinition) { c.Spec.Versions[0].Name = "v2" }, true},
		{"the schema", func(c *v1.CustomResourceDefinition) { c.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "x" }, false},
	} {
		after := costly.DeepCopy()
		tt.change(after)
		if errs := wrongWith(t, after, costly); strings.Contains(errs, wrong) == tt.stays {
			t.Errorf("%s: %s", tt.name, errs)
		}
	}
}

// widgets returns a stored definition.
func widgets(t *testing.T) *v1.CustomResourceDefinition {
	t.Helper()
	c := &v1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd]}
  conversion: {strategy: None}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}}
status:
  acceptedNames: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd]}
  conditions:
  - {type: NamesAccepted, status: "True"}
  - {type: Established, status: "True"}
  storedVersions: [v1]
`), c); err != nil {
		t.Fatal(err)
	}
	if errs := wrongWith(t, c, nil); errs != "" {
		t.Fatal(errs)
	}
	return c
}

// wrongWith returns the errors of an update of a definition.
func wrongWith(t *testing.T, is, was *v1.CustomResourceDefinition) string {
	t.Helper()
	errs, _ := validation.Validate(is, was, 0)
	if err := errs.ToAggregate(); err != nil {
		return err.Error()
	}
	return ""
}

func props(t *testing.T, text string) (out v1.JSONSchemaProps) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
