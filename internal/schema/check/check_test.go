package check

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/schematest"
)

// One rule each, in the words of kube-apiserver. Whole schemas with many
// mistakes are compared with upstream's own code in test/oracle.
func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		want         []string
	}{
		{"nothing wrong", `{type: object, properties: {metadata: {type: object, properties: {name: {type: string, pattern: ^a}}}, spec: {type: object, properties: {a: {type: string}}}}}`, nil},
		{"no type", `{properties: {a: {}, b: {type: array, items: {}}}}`, []string{
			`at.properties[a].type: Required value: must not be empty for specified object fields`,
			`at.properties[b].items.type: Required value: must not be empty for specified array items`,
			`at.type: Required value: must not be empty at the root`,
		}},
		{"another type at the root", `{type: string}`, []string{`at.type: Invalid value: "string": must be object at the root`}},
		{"no items", `{type: object, properties: {a: {type: array}}}`, []string{`at.properties[a].items: Required value: must be specified`}},
		{"types under a junctor", `{type: object, properties: {a: {type: integer, anyOf: [{type: integer}, {type: string, description: x}]}}}`, []string{
			`at.properties[a].anyOf[0].type: Forbidden: must be empty to be structural`,
			`at.properties[a].anyOf[1].description: Forbidden: must be empty to be structural`,
			`at.properties[a].anyOf[1].type: Forbidden: must be empty to be structural`,
		}},
		{"which int-or-string may", `{type: object, properties: {
			a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]},
			b: {x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {maximum: 3}]}}}`, nil},
		{"a place only spoken of", `{type: object, anyOf: [{properties: {a: {minimum: 1}}}], not: {properties: {b: {items: {minimum: 2}}}}, properties: {b: {type: object}}}`, []string{
			`at.properties[a]: Required value: because it is defined in at.anyOf[0].properties[a]`,
			`at.properties[b].items: Required value: because it is defined in at.not.properties[b].items`,
		}},
		{"metadata", `{type: object, properties: {metadata: {type: object, description: x}, kind: {type: integer}}, allOf: [{properties: {metadata: {}}}]}`, []string{
			`at.allOf[0].properties[metadata]: Forbidden: must not be specified in a nested context`,
			`at.properties[kind].type: Invalid value: "integer": must be string`,
			`at.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`,
		}},
		{"embedded objects", `{type: object, properties: {a: {type: string, x-kubernetes-embedded-resource: true}, b: {x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`, []string{
			`at.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields`,
			`at.properties[a].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true`,
			`at.properties[b].type: Required value: must be object if x-kubernetes-embedded-resource is true`,
		}},
		{"a broken pattern", `{type: object, properties: {a: {type: string, pattern: "("}}}`, []string{
			"at.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
		}},
		{"keywords", `{type: object, properties: {a: {type: foo, uniqueItems: true, id: x}}}`, []string{
			`at.properties[a].type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string"`,
			`at.properties[a].id: Forbidden: id is not supported`,
			`at.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
		}},
		{"properties and additionalProperties", `{type: object, properties: {a: {type: object, properties: {b: {type: string}}, additionalProperties: {type: string}}}}`, []string{
			`at.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`,
		}},
		{"lists that are maps", `{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, l, m, k], items: {type: object, nullable: true, properties: {
			k: {type: string}, l: {type: object, default: {}}}}}}}`, []string{
			`at.properties[a].items.properties[l].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map`,
			`at.properties[a].x-kubernetes-list-map-keys: Invalid value: ["k","l","m","k"]: entries must all be names of item properties`,
			`at.properties[a].x-kubernetes-list-map-keys: Invalid value: ["k","l","m","k"]: must not contain duplicate entries`,
			`at.properties[a].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map`,
			`at.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
			`at.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
		}},
		{"sets", `{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: object}}, b: {type: string, x-kubernetes-list-type: odd}, c: {type: string, x-kubernetes-map-type: odd}}}`, []string{
			`at.properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`,
			`at.properties[b].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified`,
			`at.properties[b].x-kubernetes-list-type: Unsupported value: "odd": supported values: "atomic", "set", "map"`,
			`at.properties[c].type: Invalid value: "string": must be object if x-kubernetes-map-type is specified`,
			`at.properties[c].x-kubernetes-map-type: Unsupported value: "odd": supported values: "atomic", "granular"`,
		}},
		{"defaults", `{type: object, properties: {metadata: {type: object, default: {}}, a: {type: object, default: {b: 1, c: 2}, properties: {c: {type: integer}}},
			e: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, properties: {metadata: {type: object, default: {labels: 5}}}}}}`, []string{
			`at.properties[a].default: Invalid value: {"b":1,"c":2}: must not have unknown fields`,
			`at.properties[e].properties[metadata].default: Invalid value: {"labels":5}: must result in valid metadata: metadata: Invalid value: {"labels":5}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string`,
			`at.properties[metadata].default: Forbidden: must not be set in top-level metadata`,
		}},
		{"validations", `{type: object, x-kubernetes-validations: [{rule: " "}, {rule: "a\nb"}, {rule: a, message: "a\nb"}, {rule: a, reason: Foo, fieldPath: " ", messageExpression: " "}]}`, []string{
			`at.x-kubernetes-validations[0].rule: Required value: rule is not specified`,
			`at.x-kubernetes-validations[1].message: Required value: message must be specified if rule contains line breaks`,
			`at.x-kubernetes-validations[2].message: Invalid value: "a\nb": must not contain line breaks`,
			`at.x-kubernetes-validations[3].messageExpression: Required value: messageExpression must be non-empty if specified`,
			`at.x-kubernetes-validations[3].reason: Unsupported value: "Foo": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"`,
			`at.x-kubernetes-validations[3].fieldPath: Invalid value: " ": must be non-empty if specified`,
			`at.x-kubernetes-validations[3].fieldPath: Invalid value: " ": must be a valid path`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := messages(Schema(schematest.Props(t, tt.schema), field.NewPath("at")).Errors())
			schematest.Equal(t, tt.schema, got, tt.want)
		})
	}
	if errs := Schema(nil, field.NewPath("at")).Errors(); errs != nil {
		t.Errorf("no schema: %v", errs)
	}
}

func TestCheckOfDefaults(t *testing.T) {
	for _, tt := range []struct {
		schema string
		want   []string
	}{
		{`{type: object, properties: {a: {type: integer, maximum: 1, default: 2}}}`,
			[]string{`at.properties[a].default: Invalid value: 2:  in body should be less than or equal to 1`}},
		{`{type: object, properties: {a: {type: object, default: {b: x}, properties: {b: {type: integer}}}}}`,
			[]string{`at.properties[a].default.b: Invalid value: "string": b in body must be of type integer: "string"`}},
		{`{type: object, properties: {a: {type: string, format: date, default: now}}}`,
			[]string{`at.properties[a].default: Invalid value: "now":  in body must be of type date: "now"`}},
	} {
		schematest.Equal(t, tt.schema, messages(Schema(schematest.Props(t, tt.schema), field.NewPath("at")).Errors()), tt.want)
	}
}

func messages(errs field.ErrorList) (out []string) {
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func TestCheckRefusesEnormousPatterns(t *testing.T) {
	big := schematest.Props(t, `{type: object, properties: {a: {type: string, pattern: "((a{1,100}){1,100}){1,100}"}}}`)
	errs := Schema(big, field.NewPath("at")).Errors()
	if len(errs) != 1 || errs[0].Field != "at.properties[a].pattern" {
		t.Error(errs)
	}
}
