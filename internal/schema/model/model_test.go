package model

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/schematest"
)

var testKind = Kind{Group: "stable.example.com", Version: "v1", Kind: "CronTab", ListKind: "CronTabList", Plural: "crontabs"}

// published returns a schema of a model as a tree.
func published(t testing.TB, m view.Model, name string) map[string]any {
	t.Helper()
	s, ok := m.Schemas[name]
	if !ok {
		t.Fatalf("no model %s", name)
	}
	return asTree(t, s)
}

func asTree(t testing.TB, s *spec.Schema) map[string]any {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return schematest.Tree(t, string(data))
}

func TestCustom(t *testing.T) {
	p := schematest.Props(t, `
type: object
properties:
  spec:
    type: object
    required: [a]
    properties:
      a: {type: string, pattern: ^x, nullable: true, default: x, enum: [x, xy], description: d}
      ios: {x-kubernetes-int-or-string: true}
      emb: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      map: {type: object, additionalProperties: {type: integer, format: int32, minimum: 1}}
      list: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      rule: {type: integer, not: {maximum: 3}, x-kubernetes-validations: [{rule: self > 1}]}
`)
	kind := testKind
	kind.SelectableFields = []string{".spec.a"}
	m := Custom(p, kind)
	schematest.Equal(t, "name", m.Name, "com.example.stable.v1.CronTab")
	schematest.Equal(t, "list", m.List, "com.example.stable.v1.CronTabList")
	const meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
	var names []string
	for name := range m.Schemas {
		names = append(names, name)
	}
	slices.Sort(names)
	schematest.Equal(t, "models", names, []string{
		m.Name, m.List, meta + "FieldsV1", meta + "ListMeta", meta + "ManagedFieldsEntry", meta + "ObjectMeta",
		meta + "OwnerReference", meta + "ShardInfo", meta + "Time",
	})

	got := published(t, m, m.Name)
	schematest.Equal(t, "extensions", []any{got["x-kubernetes-group-version-kind"], got["x-kubernetes-selectable-fields"]}, []any{
		[]any{map[string]any{"group": "stable.example.com", "version": "v1", "kind": "CronTab"}},
		[]any{map[string]any{"fieldPath": "spec.a"}},
	})
	properties := got["properties"].(map[string]any)
	schematest.Equal(t, "metadata", properties["metadata"], any(map[string]any{
		"description": metav1.PartialObjectMetadata{}.SwaggerDoc()["metadata"],
		"allOf":       []any{map[string]any{"$ref": "#/components/schemas/" + meta + "ObjectMeta"}},
	}))
	inSpec := properties["spec"].(map[string]any)["properties"].(map[string]any)
	emb := inSpec["emb"].(map[string]any)
	schematest.Equal(t, "fields of an embedded object", slices.Sorted(maps.Keys(emb["properties"].(map[string]any))), []string{"apiVersion", "kind", "metadata"})
	schematest.Equal(t, "required of an embedded object", emb["required"], any([]any{"kind", "apiVersion"}))
	delete(inSpec, "emb")
	schematest.Equal(t, "the rest of spec", inSpec, schematest.Tree(t, `
a: {type: string, pattern: ^x, nullable: true, default: x, enum: [x, xy], description: d}
ios: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
map: {type: object, additionalProperties: {type: integer, format: int32, minimum: 1}}
list: {type: array, x-kubernetes-list-type: set, items: {type: string}}
rule: {type: integer, not: {maximum: 3}, x-kubernetes-validations: [{rule: self > 1}]}
`))
	schematest.Equal(t, "items of the list", published(t, m, m.List)["properties"].(map[string]any)["items"], any(map[string]any{
		"description": "List of crontabs. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
		"type":        "array", "items": map[string]any{"$ref": "#/components/schemas/" + m.Name},
	}))
}

// A schema that is not structural is published as an arbitrary object.
func TestCustomOfOtherSchemas(t *testing.T) {
	for _, schema := range []string{`{type: object, properties: {a: {}}}`, `{type: object, properties: {a: {type: foo}}}`} {
		p := schematest.Props(t, schema)
		m := Custom(p, testKind)
		got := published(t, m, m.Name)
		delete(got, "x-kubernetes-group-version-kind")
		schematest.Equal(t, schema, got, map[string]any{"type": "object"})
	}
}

type recursive struct {
	metav1.TypeMeta `json:",inline"`

	Always   string              `json:"always"`
	Number   int32               `json:"number"`
	Maybe    *int64              `json:"maybe,omitempty"`
	Flag     bool                `json:"flag,omitempty"`
	Bytes    []byte              `json:"bytes,omitempty"`
	When     metav1.Time         `json:"when,omitempty"`
	Either   intstr.IntOrString  `json:"either,omitempty"`
	Children []recursive         `json:"children,omitempty" patchStrategy:"merge" patchMergeKey:"always"`
	ByName   map[string]*float64 `json:"byName,omitempty"`
	Anything any                 `json:"anything,omitempty"`
	Enum     string              `json:"enum,omitempty"`
}

func TestOfType(t *testing.T) {
	const name = "com.github.anykind.anykind.internal.schema.model.recursive"
	m := OfType(reflect.TypeFor[*recursive](), TypeOptions{
		Kind: Kind{Group: "g", Version: "v1", Kind: "Recursive"},
		Marks: func() gotype.Marks {
			return gotype.Marks{name: {
				"":         {Map: "atomic", Doc: "It has itself."},
				"children": {List: "map", Keys: []string{"always"}},
				"number":   {Optional: true, Default: 5},
				"enum":     {Enum: []string{"B", "A"}, Required: true, Doc: "One of two."},
			}}
		},
	})
	schematest.Equal(t, "name", m.Name, name)
	got := published(t, m, name)
	properties := got["properties"].(map[string]any)
	for _, field := range []string{"kind", "apiVersion"} {
		schematest.Equal(t, field, properties[field], any(map[string]any{"type": "string", "description": metav1.TypeMeta{}.SwaggerDoc()[field]}))
		delete(properties, field)
	}
	schematest.Equal(t, "model", got, schematest.Tree(t, `
description: It has itself.
type: object
required: [always, enum]
x-kubernetes-map-type: atomic
x-kubernetes-group-version-kind: [{group: g, version: v1, kind: Recursive}]
properties:
  always: {type: string, default: ""}
  number: {type: integer, format: int32, default: 5}
  maybe: {type: integer, format: int64}
  flag: {type: boolean}
  bytes: {type: string, format: byte}
  when: {$ref: "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}
  either: {$ref: "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}
  children:
    type: array
    items: {$ref: "#/components/schemas/`+name+`"}
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [always]
    x-kubernetes-patch-strategy: merge
    x-kubernetes-patch-merge-key: always
  byName: {type: object, additionalProperties: {type: number, format: double}}
  anything: {type: object}
  enum:
    type: string
    description: "One of two.\n\nPossible enum values:\n - `+"`\\\"A\\\"`\\n - `\\\"B\\\"`"+`"
    enum: [B, A]
`))
	schematest.Equal(t, "time", asTree(t, m.Schemas["io.k8s.apimachinery.pkg.apis.meta.v1.Time"]), schematest.Tree(t, `{type: string, format: date-time, description: "Time is a moment, to the second, as RFC 3339 writes it."}`))
	schematest.Equal(t, "int or string", asTree(t, m.Schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"])["oneOf"], any([]any{
		map[string]any{"type": "integer"}, map[string]any{"type": "string"},
	}))
}
