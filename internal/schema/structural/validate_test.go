package structural

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/schematest"
)

// ofSpec compiles a schema of spec only.
func ofSpec(t testing.TB, text string) Schema {
	t.Helper()
	return parse(t, schematest.OfSpec(t, text))
}

func parse(t testing.TB, p *apiextensionsv1.JSONSchemaProps) Schema {
	t.Helper()
	s, err := Compile(p, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validated returns what Validate has against the spec of an object.
func validated(t *testing.T, s Schema, spec, old string) []string {
	t.Helper()
	obj := schematest.Tree(t, `{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: x}, spec: `+spec+`}`)
	var was map[string]any
	if old != "" {
		was = schematest.Tree(t, `{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: x}, spec: `+old+`}`)
	}
	return messages(s.Validate(t.Context(), obj, was))
}

func messages(errs field.ErrorList) (out []string) {
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// The messages are those of kube-apiserver.
func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		schema, value string
		want          []string
	}{
		{`{type: string}`, `1`, []string{`spec: Invalid value: "integer": spec in body must be of type string: "integer"`}},
		{`{type: integer}`, `1.0`, nil},
		{`{type: integer}`, `1.5`, []string{
			`spec: Invalid value: "number": spec in body must be of type integer: "number"`,
			`<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec`,
		}},
		{`{type: number}`, `1`, nil},
		{`{type: string}`, `null`, []string{`spec: Invalid value: "null": spec in body must be of type string: "null"`}},
		{`{type: string, nullable: true}`, `null`, nil},
		{`{type: string, nullable: true, enum: [a]}`, `null`, []string{`spec: Unsupported value: null: supported values: "a"`}},
		{`{x-kubernetes-int-or-string: true}`, `true`, []string{`spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean"`}},
		{`{type: integer, format: int32}`, `2147483648`, []string{`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec`}},
		{`{type: integer, minimum: 2}`, `1`, []string{`spec: Invalid value: 1: spec in body should be greater than or equal to 2`}},
		{`{type: integer, minimum: 2, exclusiveMinimum: true}`, `2`, []string{`spec: Invalid value: 2: spec in body should be greater than 2`}},
		{`{type: number, maximum: 1.5, exclusiveMaximum: true}`, `1.5`, []string{`spec: Invalid value: 1.5: spec in body should be less than 1.5`}},
		// An integer is compared with an integer: 1.
		{`{type: number, maximum: 1.5}`, `2`, []string{`spec: Invalid value: 2: spec in body should be less than or equal to 1`}},
		{`{type: integer, multipleOf: 2}`, `3`, []string{`spec: Invalid value: 3: spec in body should be a multiple of 2`}},
		{`{type: string, maxLength: 2}`, `äöü`, []string{`spec: Too long: may not be more than 2 bytes`}},
		{`{type: string, maxLength: 3}`, `äöü`, nil},
		{`{type: string, minLength: 2}`, `a`, []string{`spec: Invalid value: "a": spec in body should be at least 2 chars long`}},
		{`{type: string, pattern: ^a}`, `b`, []string{`spec: Invalid value: "b": spec in body should match '^a'`}},
		{`{type: string, format: date-time}`, `noon`, []string{`spec: Invalid value: "noon": spec in body must be of type date-time: "noon"`}},
		{`{type: string, format: my-own}`, `noon`, nil},
		{`{type: string, enum: [a, b]}`, `c`, []string{`spec: Unsupported value: "c": supported values: "a", "b"`}},
		{`{type: object, required: [a]}`, `{}`, []string{`spec.a: Required value`}},
		{`{type: object, minProperties: 1}`, `{}`, []string{`spec: Invalid value: 0: spec in body should have at least 1 properties`}},
		{`{type: object, maxProperties: 1, additionalProperties: {type: string}}`, `{a: b, c: 1}`, []string{
			`spec: Too many: 2: must have at most 1 item`,
			`spec.c: Invalid value: "integer": spec.c in body must be of type string: "integer"`,
		}},
		{`{type: array, items: {type: string}, maxItems: 1}`, `[a, 1]`, []string{
			`spec[1]: Invalid value: "integer": spec[1] in body must be of type string: "integer"`,
			`spec: Too many: 2: must have at most 1 item`,
		}},
		{`{type: array, items: {type: string}, minItems: 1}`, `[]`, []string{`spec: Invalid value: 0: spec in body should have at least 1 items`}},
		{`{type: array, items: {type: string}, x-kubernetes-list-type: set}`, `[a, b, a, a]`, []string{`spec[2]: Duplicate value: "a"`}},
		{`{type: array, items: {type: object, properties: {k: {type: string}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}`,
			`[{k: a}, {}, {k: a}, {}]`, []string{`spec[2]: Duplicate value: {"k":"a"}`, `spec[3]: Duplicate value: {}`}},
		{`{type: string, nullable: true, enum: [a, null]}`, `null`, []string{`spec: Unsupported value: null: supported values: "a", "null"`}},
		{`{type: string, enum: [a, null]}`, `b`, []string{`spec: Unsupported value: "b": supported values: "a", "null"`}},
		{`{type: integer, not: {minimum: 3}}`, `4`, []string{`<nil>: Invalid value: "": "spec" must not validate the schema (not)`}},
		{`{type: integer, oneOf: [{minimum: 1}, {minimum: 2}]}`, `4`, []string{`<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives`}},
		{`{type: integer, anyOf: [{minimum: 1}, {minimum: 2}]}`, `0`, []string{
			`<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)`,
			`spec: Invalid value: 0: spec in body should be greater than or equal to 1`,
		}},
		{`{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`, `{kind: a_b}`, []string{
			`spec.apiVersion: Required value`,
			`spec.kind: Invalid value: "a_b": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
		}},
	} {
		t.Run(tt.schema, func(t *testing.T) {
			schematest.Equal(t, tt.value, validated(t, ofSpec(t, tt.schema), tt.value, ""), tt.want)
		})
	}
}

// Errors of unchanged values are not reported.
func TestValidateUpdate(t *testing.T) {
	const listMap = `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k],
		items: {type: object, properties: {k: {type: string}, i: {type: integer, maximum: 1}, m: {type: integer, maximum: 1}}}}`
	for _, tt := range []struct {
		name, schema, old, value string
		want                     []string
	}{
		{"a field beside one that changed", `{type: object, properties: {a: {type: integer, maximum: 1}, b: {type: string}}}`, `{a: 2, b: x}`, `{a: 2, b: z}`, nil},
		{"a field that changed", `{type: object, properties: {a: {type: integer, maximum: 1}}}`, `{a: 2}`, `{a: 3}`,
			[]string{`spec.a: Invalid value: 3: spec.a in body should be less than or equal to 1`}},
		{"a value of a map", `{type: object, additionalProperties: {type: integer, maximum: 1}}`, `{a: 2}`, `{a: 2, b: 1}`, nil},
		{"an item of a map list, elsewhere", listMap, `[{k: a, i: 2}, {k: b}]`, `[{k: b}, {k: c}, {k: a, i: 2, m: 1}]`, nil},
		{"a new item", listMap, `[{k: a, i: 2}]`, `[{k: c, i: 2}]`, []string{`spec[0].i: Invalid value: 2: spec[0].i in body should be less than or equal to 1`}},
		{"an atomic list that changed", `{type: array, items: {type: integer, maximum: 1}}`, `[2]`, `[2, 1]`,
			[]string{`spec[0]: Invalid value: 2: spec[0] in body should be less than or equal to 1`}},
		{"an atomic list that did not", `{type: object, properties: {l: {type: array, items: {type: integer, maximum: 1}}, b: {type: string}}}`, `{l: [2], b: x}`, `{l: [2], b: z}`, nil},
		{"a set that had something twice", `{type: array, items: {type: string}, x-kubernetes-list-type: set}`, `[a, a]`, `[a, a, b, b]`, nil},
		{"a field that is still missing", `{type: object, required: [a], properties: {b: {type: string}}}`, `{b: x}`, `{b: x}`, nil},
		{"a field that is missing from what changed", `{type: object, required: [a], properties: {b: {type: string}}}`, `{b: x}`, `{b: z}`, []string{`spec.a: Required value`}},
		{"a junctor over what changed", `{type: object, properties: {a: {type: integer}, b: {type: string}}, not: {properties: {a: {minimum: 2}}}}`, `{a: 2, b: x}`, `{a: 2, b: z}`,
			[]string{`<nil>: Invalid value: "": "spec" must not validate the schema (not)`}},
		{"what the schema does not specify counts as changed", `{type: object, required: [a], x-kubernetes-preserve-unknown-fields: true}`, `{b: x}`, `{b: x}`, []string{`spec.a: Required value`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schematest.Equal(t, tt.value, validated(t, ofSpec(t, tt.schema), tt.value, tt.old), tt.want)
		})
	}
}

// A write of the status is validated by the schema of the status, and paths in messages start there.
func TestValidateStatus(t *testing.T) {
	s := parse(t, schematest.Props(t, `{type: object, required: [spec], properties: {spec: {type: object},
		status: {type: object, required: [phase], properties: {phase: {type: string}, a: {type: integer, maximum: 1}, b: {type: integer, maximum: 1}}}}}`))
	old := schematest.Tree(t, `{metadata: {name: x}, status: {a: 2}}`)
	obj := schematest.Tree(t, `{metadata: {name: x}, status: {a: 2, b: 3}}`)
	schematest.Equal(t, "status", messages(s.ValidateStatus(obj, old)), []string{
		`status.b: Invalid value: 3: b in body should be less than or equal to 1`,
		`status.phase: Required value`,
	})
	if errs := s.ValidateStatus(schematest.Tree(t, `{metadata: {name: x}}`), old); len(errs) > 0 {
		t.Errorf("no status: %v", errs)
	}
}

// A schema of metadata may only constrain the name.
func TestValidateName(t *testing.T) {
	s := parse(t, schematest.Props(t, `{type: object, properties: {metadata: {type: object, properties: {name: {type: string, pattern: ^a}}}}}`))
	schematest.Equal(t, "errors", messages(s.Validate(t.Context(), schematest.Tree(t, `{metadata: {name: b}}`), nil)), []string{
		`metadata.name: Invalid value: "b": metadata.name in body should match '^a'`,
	})
}

// Validation of a valid object allocates nothing, for any number of places.
func TestValidateAllocatesNothing(t *testing.T) {
	s := ofSpec(t, `{type: object, properties: {list: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name],
		items: {type: object, required: [name], properties: {name: {type: string, maxLength: 9, format: hostname}, n: {type: integer, minimum: 0}}}}}}`)
	var list []any
	for i := range 10 {
		list = append(list, map[string]any{"name": fmt.Sprint("i", i), "n": int64(i)})
	}
	obj := map[string]any{"spec": map[string]any{"list": list}}
	if errs := s.Validate(t.Context(), obj, nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { s.Validate(ctx, obj, obj) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkValidate(b *testing.B) {
	s, obj := ofSpec(b, benchSchema), benchObject(b)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if errs := s.Validate(ctx, obj, nil); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

// One field is wrong and was before.
func BenchmarkValidateForgiven(b *testing.B) {
	p := schematest.Props(b, benchSchema)
	rules := p.Properties["rules"].Items.Schema
	host := rules.Properties["host"]
	host.MaxLength = new(int64(2))
	rules.Properties["host"] = host
	s := parse(b, &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": *p}})
	obj := benchObject(b)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if errs := s.Validate(ctx, obj, obj); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
