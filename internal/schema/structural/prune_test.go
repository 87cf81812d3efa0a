package structural

import (
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/schematest"
)

func TestPrune(t *testing.T) {
	for _, tt := range []struct {
		name    string
		schema  string // of spec
		spec    string
		want    string
		removed []string
	}{
		{
			name:   "known fields stay",
			schema: `{type: object, properties: {a: {type: string}, b: {type: array, items: {type: object, properties: {c: {type: integer}}}}}}`,
			spec:   `{a: x, b: [{c: 1}]}`,
			want:   `{a: x, b: [{c: 1}]}`,
		},
		{
			name:    "unknown fields go, at every depth, and are reported in order",
			schema:  `{type: object, properties: {a: {type: string}, b: {type: array, items: {type: object, properties: {c: {type: integer}}}}}}`,
			spec:    `{z: 1, a: x, b: [{c: 1, d: 1}, {}, {e: {f: 1}}]}`,
			want:    `{a: x, b: [{c: 1}, {}, {}]}`,
			removed: []string{"spec.b[0].d", "spec.b[2].e", "spec.z"},
		},
		{
			name:   "a preserving schema keeps everything it does not specify",
			schema: `{type: object, x-kubernetes-preserve-unknown-fields: true}`,
			spec:   `{a: {b: [{c: 1}]}}`,
			want:   `{a: {b: [{c: 1}]}}`,
		},
		{
			name: "pruning is on again below a specified property",
			schema: `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {
				known: {type: object, properties: {a: {type: string}}}}}`,
			spec:    `{other: {x: 1}, known: {a: x, b: 1}}`,
			want:    `{other: {x: 1}, known: {a: x}}`,
			removed: []string{"spec.known.b"},
		},
		{
			name: "and off again where that says so",
			schema: `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {
				known: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object}}}}}`,
			spec:    `{known: {b: {c: 1}, a: {d: 1}}}`,
			want:    `{known: {b: {c: 1}, a: {}}}`,
			removed: []string{"spec.known.a.d"},
		},
		{
			name: "items of a preserved list are preserved too",
			schema: `{type: object, properties: {l: {type: array, x-kubernetes-preserve-unknown-fields: true,
				items: {type: object, properties: {a: {type: object}}}}}}`,
			spec:    `{l: [{b: 1, a: {c: 1}}]}`,
			want:    `{l: [{b: 1, a: {}}]}`,
			removed: []string{"spec.l[0].a.c"},
		},
		{
			name:    "additionalProperties with a schema",
			schema:  `{type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}`,
			spec:    `{one: {a: x}, two: {b: 1}}`,
			want:    `{one: {a: x}, two: {}}`,
			removed: []string{"spec.two.b"},
		},
		{
			name:    "additionalProperties true keeps the fields and knows nothing below them",
			schema:  `{type: object, additionalProperties: true}`,
			spec:    `{a: 1, b: {c: 1}, d: [{e: 1}]}`,
			want:    `{a: 1, b: {}, d: [{}]}`,
			removed: []string{"spec.b.c", "spec.d[0].e"},
		},
		{
			name:    "a scalar's schema knows no fields",
			schema:  `{type: object, properties: {a: {type: string}, l: {type: array, items: {type: string}}}}`,
			spec:    `{a: {b: 1}, l: [{c: 1}, [{d: 1}]]}`,
			want:    `{a: {}, l: [{}, [{}]]}`,
			removed: []string{"spec.a.b", "spec.l[0].c", "spec.l[1][0].d"},
		},
		{
			name: "an embedded object keeps its type and metadata",
			schema: `{type: object, x-kubernetes-embedded-resource: true, properties: {
				spec: {type: object, properties: {a: {type: string}}}}}`,
			spec:    `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {a: x, b: 1}, status: {}}`,
			want:    `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {a: x}}`,
			removed: []string{"spec.spec.b", "spec.status"},
		},
		{
			name:    "which is not so for any other",
			schema:  `{type: object, properties: {a: {type: string}}}`,
			spec:    `{apiVersion: v1, kind: Pod, metadata: {name: x}, a: x}`,
			want:    `{a: x}`,
			removed: []string{"spec.apiVersion", "spec.kind", "spec.metadata"},
		},
		{
			name:    "the metadata of an embedded object",
			schema:  `{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`,
			spec:    `{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {a: b}, foo: 1, ownerReferences: [{name: x, bar: 1}]}, data: {}}`,
			want:    `{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {a: b}, ownerReferences: [{apiVersion: "", kind: "", name: x, uid: ""}]}, data: {}}`,
			removed: []string{"spec.metadata.foo", "spec.metadata.ownerReferences[0].bar"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := schematest.Tree(t, "{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: x}, spec: "+tt.spec+"}")
			removed := ofSpec(t, tt.schema).Prune(obj)
			schematest.Equal(t, "removed", removed, tt.removed)
			schematest.Equal(t, "spec", obj["spec"], any(schematest.Tree(t, tt.want)))
		})
	}
}

func TestPruneRoot(t *testing.T) {
	s := parse(t, schematest.Props(t, `{type: object, properties: {spec: {type: object}}}`))
	obj := schematest.Tree(t, `{apiVersion: v1, kind: K, metadata: {name: x, zone: 1, labels: {a: b}}, spec: {}, status: {}, a: 1}`)
	schematest.Equal(t, "removed", s.Prune(obj), []string{"metadata.zone", "a", "status"})
	schematest.Equal(t, "object", obj, schematest.Tree(t, `{apiVersion: v1, kind: K, metadata: {name: x, labels: {a: b}}, spec: {}}`))

	obj = schematest.Tree(t, `{apiVersion: v1, kind: K, spec: {}}`)
	schematest.Equal(t, "removed where nothing is specified", parse(t, nil).Prune(obj), []string{"spec"})

	legacy, err := Compile(schematest.Props(t, `{type: object}`), true)
	if err != nil {
		t.Fatal(err)
	}
	obj = schematest.Tree(t, `{apiVersion: v1, kind: K, spec: {a: null}}`)
	if removed := legacy.Prune(obj); removed != nil {
		t.Errorf("a kind that preserves unknown fields lost %v", removed)
	}
}

// Stored metadata may be older than its rules: unreadable fields are dropped, and the rest stays.
func TestPruneStoredMetadata(t *testing.T) {
	s := parse(t, schematest.Props(t, `{type: object}`))
	for _, tt := range []struct{ meta, want string }{
		{`{name: x, labels: {a: 1}, annotations: {b: c}}`, `{name: x, annotations: {b: c}}`},
		{`{name: x, creationTimestamp: yesterday}`, `{name: x}`},
		{`{name: x, labels: {}, generation: 0, finalizers: []}`, `{name: x}`},
		{`{name: x, creationTimestamp: "2026-01-02T03:04:05+02:00"}`, `{name: x, creationTimestamp: "2026-01-02T01:04:05Z"}`},
		{`{name: x, creationTimestamp: null}`, `{name: x}`},
	} {
		obj := map[string]any{"metadata": schematest.Tree(t, tt.meta)}
		if removed := s.Prune(obj); removed != nil {
			t.Errorf("%s: removed %v", tt.meta, removed)
		}
		schematest.Equal(t, tt.meta, obj["metadata"], any(schematest.Tree(t, tt.want)))
	}
	obj := map[string]any{"metadata": int64(5)}
	s.Prune(obj)
	schematest.Equal(t, "metadata that is not an object", obj, map[string]any{"metadata": int64(5)})
}

// Paths are right at any depth.
func TestPruneDeep(t *testing.T) {
	const depth = 40
	schema, object, path := "{type: object}", "{x: 1}", ""
	for range depth {
		schema = "{type: object, properties: {a: {type: array, items: " + schema + "}}}"
		object = "{a: [{}, " + object + "]}"
		path += ".a[1]"
	}
	obj := schematest.Tree(t, "{spec: "+object+"}")
	schematest.Equal(t, "removed", ofSpec(t, schema).Prune(obj), []string{"spec" + path + ".x"})
}

// Nearly all objects are in form, and their check allocates nothing.
func TestPruneAllocatesNothing(t *testing.T) {
	s := ofSpec(t, benchSchema)
	obj := benchObject(t)
	if removed := s.Prune(object.CloneTree(obj)); removed != nil {
		t.Fatalf("removed %v", removed)
	}
	if n := testing.AllocsPerRun(100, func() { s.Prune(obj) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { s.Default(obj) }); n != 0 {
		t.Errorf("defaulting: %v allocations", n)
	}
}
