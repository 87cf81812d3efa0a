package validation

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// Unknown formats, and sets with indistinguishable items, cause one warning each, in any part of any
// version.
func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		name, old, now string
		want           []string
	}{
		{"known", ``, `{type: object, properties: {
			a: {type: string, format: date-time}, b: {type: integer, format: int64}, c: {type: number, format: double},
			d: {x-kubernetes-int-or-string: true, format: uri}, e: {type: string, format: k8s-short-name}}}`, nil},
		{"of another type", ``, `{type: object, format: date, properties: {
			a: {type: string, format: int32}, b: {type: integer, format: float}, c: {type: number, format: int64},
			d: {type: boolean, format: byte}}}`, []string{
			`unrecognized format "date"`, `unrecognized format "int32"`, `unrecognized format "float"`, `unrecognized format "int64"`, `unrecognized format "byte"`}},
		{"case and dashes", ``, `{type: object, properties: {a: {type: string, format: DATE}, b: {type: string, format: d-a-t-e}, c: {type: integer, format: int-32}}}`,
			[]string{`unrecognized format "DATE"`, `unrecognized format "int-32"`}},
		{"everywhere", ``, `{not: {properties: {a: {format: "4"}}}, allOf: [{format: "1"}], anyOf: [{format: "2"}], oneOf: [{format: "3"}],
			properties: {a: {items: {format: "5"}}, b: {additionalProperties: {format: "6", enum: [{format: no}], default: {format: no}}}}, additionalProperties: true}`,
			[]string{`unrecognized format "1"`, `unrecognized format "2"`, `unrecognized format "3"`, `unrecognized format "4"`, `unrecognized format "5"`, `unrecognized format "6"`}},
		{"once", ``, `{properties: {a: {format: x}, b: {format: x}}}`, []string{`unrecognized format "x"`}},
		{"not again", `{properties: {a: {format: x}}}`, `{properties: {b: {format: x}, c: {format: z}}}`, []string{`unrecognized format "z"`}},
		{"properties that are named like keywords", ``, `{properties: {format: {type: string}, items: {format: x}}}`, []string{`unrecognized format "x"`}},
		{"sets", ``, `{properties: {
			a: {x-kubernetes-list-type: set, items: {type: object}}, b: {x-kubernetes-list-type: set, items: {type: array}},
			c: {x-kubernetes-list-type: set, items: {type: string}}, d: {x-kubernetes-list-type: atomic, items: {type: object}}}}`,
			[]string{setOf("array"), setOf("object")}},
		{"sets that were", `{properties: {a: {x-kubernetes-list-type: set, items: {type: object}}}}`,
			`{properties: {b: {x-kubernetes-list-type: set, items: {type: object}}, c: {x-kubernetes-list-type: set, items: {type: array}}}}`,
			[]string{setOf("array")}},
		{"nothing that is a schema", ``, `[1, 2]`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var old object.Tree
			if tt.old != "" {
				old = inVersions(t, tt.old)
			}
			if got := Warnings(inVersions(t, tt.now), old); !slices.Equal(got, tt.want) {
				t.Errorf("found %q\nwant  %q", got, tt.want)
			}
		})
	}
}

func setOf(items string) string {
	return `x-kubernetes-list-type: set for items of type "` + items + `" is not supported by server-side apply or CEL validation rules`
}

// inVersions is a CustomResourceDefinition with a schema, twice.
func inVersions(t *testing.T, schema string) object.Tree {
	t.Helper()
	var s any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(schema, "\t", " ")), &s); err != nil {
		t.Fatal(err)
	}
	v := object.Tree{"schema": object.Tree{"openAPIV3Schema": s}}
	return object.Tree{"spec": object.Tree{"versions": []any{v, v}}}
}
