package structural

import (
	"testing"

	"github.com/anykind/anykind/internal/schema/schematest"
)

func TestDefault(t *testing.T) {
	for _, tt := range []struct{ name, schema, spec, want string }{
		{
			name:   "what is missing is filled in, what is there stays",
			schema: `{type: object, properties: {a: {type: string, default: x}, b: {type: integer, default: 5}, c: {type: string}}}`,
			spec:   `{b: 7}`,
			want:   `{a: x, b: 7}`,
		},
		{
			name:   "a default is complete with those inside it",
			schema: `{type: object, properties: {o: {type: object, default: {}, properties: {a: {type: string, default: x}, b: {type: object, default: {c: 1}, properties: {c: {type: integer}, d: {type: integer, default: 2}}}}}}}`,
			spec:   `{}`,
			want:   `{o: {a: x, b: {c: 1, d: 2}}}`,
		},
		{
			name:   "nothing is made up on the way to a default",
			schema: `{type: object, properties: {o: {type: object, properties: {a: {type: string, default: x}}}}}`,
			spec:   `{}`,
			want:   `{}`,
		},
		{
			name:   "null where it may not be: the default, or nothing",
			schema: `{type: object, properties: {a: {type: string, default: x}, b: {type: string}, c: {type: string, nullable: true, default: x}}}`,
			spec:   `{a: null, b: null, c: null}`,
			want:   `{a: x, c: null}`,
		},
		{
			name:   "null stays where nothing is known",
			schema: `{type: object, x-kubernetes-preserve-unknown-fields: true, additionalProperties: true}`,
			spec:   `{a: null}`,
			want:   `{a: null}`,
		},
		{
			name:   "in lists nothing is dropped",
			schema: `{type: object, properties: {l: {type: array, items: {type: string}}, m: {type: array, items: {type: string, default: x}}}}`,
			spec:   `{l: [a, null], m: [null, b]}`,
			want:   `{l: [a, null], m: [x, b]}`,
		},
		{
			name:   "inside items and additionalProperties",
			schema: `{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string, default: x}}}}, m: {type: object, additionalProperties: {type: object, properties: {a: {type: string, default: y}}}}}}`,
			spec:   `{l: [{}, {a: z}], m: {k: {}, n: null}}`,
			want:   `{l: [{a: x}, {a: z}], m: {k: {a: y}}}`,
		},
		{
			name:   "a default is pruned",
			schema: `{type: object, properties: {o: {type: object, default: {a: x, b: y}, properties: {a: {type: string}}}}}`,
			spec:   `{}`,
			want:   `{o: {a: x}}`,
		},
		{
			name: "so is one inside the metadata of an embedded object",
			schema: `{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, properties: {
				metadata: {type: object, properties: {labels: {type: object, additionalProperties: {type: string}, default: {a: b}}, foo: {type: string, default: x}}}}}`,
			spec: `{metadata: {name: x}}`,
			want: `{metadata: {name: x, labels: {a: b}}}`,
		},
		{
			name:   "a null in a default stays",
			schema: `{type: object, properties: {o: {type: object, default: {a: null}, properties: {a: {type: string}}}}}`,
			spec:   `{}`,
			want:   `{o: {a: null}}`,
		},
		{
			name:   "a null default is none",
			schema: `{type: object, properties: {a: {type: string, default: null, nullable: true}}}`,
			spec:   `{}`,
			want:   `{}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := schematest.Tree(t, "{spec: "+tt.spec+"}")
			ofSpec(t, tt.schema).Default(obj)
			schematest.Equal(t, "spec", obj["spec"], any(schematest.Tree(t, tt.want)))
		})
	}
}

// Every object gets its own copy of a default.
func TestDefaultsAreNotShared(t *testing.T) {
	s := ofSpec(t, `{type: object, default: {l: [a]}, properties: {l: {type: array, items: {type: string}}}}`)
	first, second := map[string]any{}, map[string]any{}
	s.Default(first)
	first["spec"].(map[string]any)["l"].([]any)[0] = "changed"
	s.Default(second)
	schematest.Equal(t, "second", second, schematest.Tree(t, `{spec: {l: [a]}}`))
}

// HasNulls finds the nulls that Default drops.
func TestHasNulls(t *testing.T) {
	s := ofSpec(t, `{type: object, properties: {
		free: {x-kubernetes-preserve-unknown-fields: true},
		preset: {type: string, default: x},
		nullable: {type: string, nullable: true},
		list: {type: array, items: {type: object, properties: {a: {type: string}}}}}}`)
	for spec, want := range map[string]bool{
		`{free: null}`:                        true,
		`{free: {a: null}}`:                   false,
		`{preset: null}`:                      false,
		`{nullable: null, list: [{a: b}]}`:    false,
		`{list: [{a: b}, {a: null}]}`:         true,
		`{list: [], unknown: null, free: {}}`: false,
	} {
		obj := schematest.Tree(t, `{spec: `+spec+`}`)
		if got := s.HasNulls(obj); got != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
}

// An applied configuration keeps its nulls, except in metadata, which has a Go type.
func TestFill(t *testing.T) {
	s := ofSpec(t, `{type: object, properties: {
		a: {type: string},
		b: {type: string, default: x},
		o: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`)
	obj := schematest.Tree(t, `{
		metadata: {name: x, labels: {a: null}, annotations: {}, finalizers: null},
		spec: {a: null, o: {apiVersion: v1, kind: Pod, metadata: {labels: {}, finalizers: [], annotations: {a: null}}}}}`)
	s.Fill(obj)
	schematest.Equal(t, "object", obj, schematest.Tree(t, `{
		metadata: {name: x, labels: {a: ""}},
		spec: {a: null, b: x, o: {apiVersion: v1, kind: Pod, metadata: {annotations: {a: ""}}}}}`))
}
