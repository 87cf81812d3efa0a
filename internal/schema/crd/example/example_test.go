package example

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct{ name, schema, first, last string }{
		{"what is required, and simple fields", `{required: [a], properties: {a: {type: string}, b: {type: integer, minimum: 5, exclusiveMinimum: true}, c: {type: object, properties: {d: {type: string}}}}}`,
			`{"a":"example","b":6}`, `{"a":"example","b":6}`},
		{"defaults", `{properties: {a: {type: object, properties: {x: {type: string, default: y}, z: {type: string}}, required: [x]}, b: {type: array, default: [1], items: {type: integer}}}}`,
			`{"b":[1]}`, `{}`},
		{"lists with keys", `{required: [a], properties: {a: {type: array, minItems: 2, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer, maximum: 0}}}}}}`,
			`{"a":[{"name":"example"},{"name":"example2"}]}`, `{"a":[{"name":"example","port":0},{"name":"example2","port":0}]}`},
		{"patterns, formats and enums", `{properties: {a: {type: string, pattern: '^[0-9]+s$'}, b: {type: string, format: date-time}, c: {type: string, enum: [x, y]}, d: {type: string, minLength: 9, maxLength: 9}, timeout: {type: string}}}`,
			`{"a":"10s","b":"2026-01-01T00:00:00Z","c":"x","d":"exampleee","timeout":"1h"}`, `{"a":"10s","b":"2026-01-01T00:00:00Z","c":"x","d":"exampleee","timeout":"1h"}`},
		{"one of several", `{oneOf: [{required: [b]}, {required: [a]}], properties: {a: {type: object}, b: {type: object, additionalProperties: {type: integer}, minProperties: 1}}}`,
			`{"b":{"key1":1}}`, `{"b":{"key1":1}}`},
		{"what rules ask for", `{x-kubernetes-validations: [{rule: "!has(self.b) || has(self.a.x)"}], properties: {a: {type: object, properties: {x: {type: object}}}, b: {type: object}}}`,
			`{}`, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := v1.JSONSchemaProps{}
			if err := yaml.Unmarshal([]byte(tt.schema), &spec); err != nil {
				t.Fatal(err)
			}
			spec.Type = "object"
			d := &v1.CustomResourceDefinition{Spec: v1.CustomResourceDefinitionSpec{Group: "example.com", Names: v1.CustomResourceDefinitionNames{Kind: "Widget"}}}
			all := Of(d, &v1.CustomResourceDefinitionVersion{Name: "v1", Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: &v1.JSONSchemaProps{
				Type: "object", Properties: map[string]v1.JSONSchemaProps{"spec": spec, "status": {Type: "object"}},
			}}})
			for want, tree := range map[*string]map[string]any{&tt.first: all[0], &tt.last: all[len(all)-1]} {
				got, _ := json.Marshal(tree["spec"])
				if string(got) != *want || tree["apiVersion"] != "example.com/v1" || tree["kind"] != "Widget" || tree["status"] != nil {
					t.Errorf("%s, want %s", got, *want)
				}
			}
			if got, _ := json.Marshal(all[1]["spec"]); tt.name == "what rules ask for" && string(got) != `{"a":{"x":{}}}` {
				t.Errorf("%s has not what the rule asks for", got)
			}
		})
	}
}
