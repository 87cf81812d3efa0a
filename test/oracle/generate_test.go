package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A generator generates schemas and mostly matching objects.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 2))} }

// one is true with the probability 1/n.
func (g generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g generator, list ...T) T { return list[g.IntN(len(list))] }

var fieldNames = []string{"a", "b", "c", "spec", "apiVersion", "kind", "metadata", "name", "labels", "*"}

// root returns a structural schema of a kind.
func (g generator) root() *apiextensionsv1.JSONSchemaProps {
	p := g.object(4)
	p.AdditionalProperties, p.XEmbeddedResource, p.Nullable = nil, false, false
	p.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": *g.schema(4), "status": *g.schema(2)}
	if g.one(3) {
		p.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
	}
	return p
}

// schema returns a structural schema of a value of any type.
func (g generator) schema(depth int) *apiextensionsv1.JSONSchemaProps {
	var p *apiextensionsv1.JSONSchemaProps
	switch {
	case depth == 0 || g.one(4):
		p = &apiextensionsv1.JSONSchemaProps{Type: pick(g, "string", "integer", "number", "boolean")}
		if g.one(8) {
			p = &apiextensionsv1.JSONSchemaProps{XIntOrString: true}
		}
	case g.one(4):
		p = &apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.schema(depth - 1)}}
		if g.one(6) {
			p.XPreserveUnknownFields = new(true)
		}
	case g.one(12):
		p = &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
	default:
		p = g.object(depth)
	}
	p.Nullable = g.one(4)
	if g.one(3) {
		p.Default = asJSON(g.value(p, depth, 10))
	}
	return p
}

func (g generator) object(depth int) *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{Type: "object"}
	if g.one(5) {
		p.XPreserveUnknownFields = new(true)
	}
	if g.one(4) {
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: !g.one(4)}
		if g.one(2) {
			p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: g.schema(depth - 1)}
		}
		return p
	}
	p.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	for range g.IntN(4) {
		p.Properties[pick(g, fieldNames...)] = *g.schema(depth - 1)
	}
	if g.one(5) {
		p.XEmbeddedResource = true
		for _, name := range []string{"apiVersion", "kind"} {
			if _, ok := p.Properties[name]; ok {
				p.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			}
		}
	}
	return p
}

func asJSON(v any) *apiextensionsv1.JSON {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &apiextensionsv1.JSON{Raw: raw}
}

// value returns a value that p allows, in which one part in noise is arbitrary.
func (g generator) value(p *apiextensionsv1.JSONSchemaProps, depth, noise int) any {
	if p == nil || g.one(noise) || depth < -3 {
		return g.anything(2)
	}
	switch p.Type {
	case "string":
		return pick(g, "", "x", "y")
	case "integer":
		return int64(g.IntN(5))
	case "number":
		return pick(g, any(int64(2)), any(1.5))
	case "boolean":
		return g.one(2)
	case "array":
		list := make([]any, g.IntN(4))
		var items *apiextensionsv1.JSONSchemaProps // nil for a mistake of spoil
		if p.Items != nil {
			items = p.Items.Schema
		}
		for i := range list {
			list[i] = g.value(items, depth-1, noise)
		}
		return list
	case "object":
		return g.fields(p, depth, noise)
	default:
		return g.anything(3)
	}
}

func (g generator) fields(p *apiextensionsv1.JSONSchemaProps, depth, noise int) map[string]any {
	m := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		sub := p.Properties[name]
		if !g.one(3) {
			m[name] = g.value(&sub, depth-1, noise)
		}
	}
	if p.AdditionalProperties != nil {
		for i := range g.IntN(3) {
			m[fmt.Sprint("key", i)] = g.value(p.AdditionalProperties.Schema, depth-1, noise)
		}
	}
	if g.one(noise) {
		m[pick(g, fieldNames...)] = g.anything(2)
	}
	if p.XEmbeddedResource || g.one(20) {
		m["apiVersion"], m["kind"] = "v1", "Pod"
		m["metadata"] = g.metadata()
	}
	return m
}

// anything returns an arbitrary JSON value.
func (g generator) anything(depth int) any {
	switch g.IntN(8) {
	case 0:
		return nil
	case 1:
		return pick(g, "", "x")
	case 2:
		return int64(g.IntN(3))
	case 3:
		return g.one(2)
	case 4:
		return 0.5
	case 5:
		list := make([]any, g.IntN(3))
		for i := range list {
			list[i] = g.anything(depth - 1)
		}
		return list
	default:
		m := map[string]any{}
		for range g.IntN(3) * min(depth, 1) {
			m[pick(g, fieldNames...)] = g.anything(depth - 1)
		}
		return m
	}
}

// metadata returns metadata, sometimes with mistakes.
func (g generator) metadata() any {
	if g.one(20) {
		return g.anything(1)
	}
	m := map[string]any{}
	for _, f := range []struct {
		name string
		good []any
	}{
		{"name", []any{"x", ""}},
		{"namespace", []any{"default"}},
		{"labels", []any{map[string]any{"a": "b"}, map[string]any{}}},
		{"annotations", []any{map[string]any{"a": "b", "c": ""}}},
		{"creationTimestamp", []any{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05+02:00", nil}},
		{"deletionTimestamp", []any{"2026-01-02T03:04:05.5Z"}},
		{"generation", []any{int64(3), int64(0)}},
		{"finalizers", []any{[]any{"a/b"}, []any{}}},
		{"ownerReferences", []any{
			[]any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": true}},
			[]any{map[string]any{"name": "x", "extra": int64(1)}},
		}},
		{"managedFields", []any{[]any{map[string]any{
			"manager": "m", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z",
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{}},
		}}}},
	} {
		switch {
		case g.one(25):
			m[f.name] = g.anything(2)
		case g.one(3):
			m[f.name] = pick(g, f.good...)
		}
	}
	if g.one(10) {
		m["unknown"] = g.anything(1)
	}
	return m
}

// whole returns an object with apiVersion, kind and metadata.
func (g generator) whole(p *apiextensionsv1.JSONSchemaProps, noise int) map[string]any {
	m := g.fields(p, 4, noise)
	m["apiVersion"], m["kind"], m["metadata"] = "stable.example.com/v1", "CronTab", g.metadata()
	if g.one(20) {
		delete(m, "metadata")
	}
	return m
}
