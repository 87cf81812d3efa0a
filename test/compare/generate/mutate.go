package generate

import (
	"maps"
	"slices"
	"strings"
)

// A spot is a value in an object that can be changed.
type spot struct {
	path   []any // names and indexes
	schema *Schema
	get    func() any
	set    func(any)
	remove func() // nil if it cannot be removed
}

// spots returns the spots of a tree, the deepest first.
func spots(v any, s *Schema, path []any) []spot {
	var out []spot
	step := func(e any) []any { return append(path[:len(path):len(path)], e) }
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			schema := s.property(name)
			out = append(out, spots(v[name], schema, step(name))...)
			out = append(out, spot{step(name), schema, func() any { return v[name] }, func(n any) { v[name] = n }, func() { delete(v, name) }})
		}
	case []any:
		var items *Schema
		if s != nil {
			items = s.Items
		}
		for i := range v {
			out = append(out, spots(v[i], items, step(i))...)
			out = append(out, spot{step(i), items, func() any { return v[i] }, func(n any) { v[i] = n }, nil})
		}
	}
	return out
}

// mutate changes an object, mostly in one spot.
func (g *G) mutate(o map[string]any, s *Schema) {
	for {
		g.mutateOne(o, s)
		if !g.chance(4) {
			return
		}
	}
}

func (g *G) mutateOne(o map[string]any, s *Schema) {
	all := spots(o, s, nil)
	// Names from the sequence mostly stay, or every object would be a different one.
	all = slices.DeleteFunc(all, func(at spot) bool {
		first, _ := at.path[0].(string)
		return (first == "apiVersion" || first == "kind" || first == "metadata") && !g.chance(3)
	})
	if len(all) == 0 || g.chance(4) {
		g.addField(o, s)
		return
	}
	at := one(g, all...)
	switch g.IntN(12) {
	case 0, 1:
		if at.remove != nil {
			at.remove()
			return
		}
		at.set(nil)
	case 2:
		at.set(nil)
	case 3:
		at.set(zero(at.get()))
	case 4:
		at.set(g.anything(4))
	case 5:
		if text, ok := at.get().(string); ok {
			at.set(strings.Repeat(text+"x", one(g, 2, 30, 70, 260)))
			return
		}
		at.set(g.name())
	case 6:
		if list, ok := at.get().([]any); ok && len(list) > 0 {
			at.set(append(slices.Clone(list), clone(one(g, list...))))
			return
		}
		at.set(g.value(at.schema, 2))
	case 7:
		if m, ok := at.get().(map[string]any); ok {
			m[g.name()] = g.anything(4)
			return
		}
		at.set(g.value(at.schema, 2))
	case 8:
		if list, ok := at.get().([]any); ok && len(list) > 1 {
			reversed := slices.Clone(list)
			slices.Reverse(reversed)
			at.set(reversed)
			return
		}
		at.set(g.name())
	default:
		at.set(g.value(at.schema, 2))
	}
}

// addField adds a field that the schema has and the object lacks, or an unknown one.
func (g *G) addField(o map[string]any, s *Schema) {
	into, schema := o, s
	for range g.IntN(4) {
		var next []string
		for _, name := range slices.Sorted(maps.Keys(into)) {
			if _, ok := into[name].(map[string]any); ok {
				next = append(next, name)
			}
		}
		if len(next) == 0 {
			break
		}
		name := one(g, next...)
		into, schema = into[name].(map[string]any), schema.property(name)
	}
	if schema != nil && len(schema.names) > 0 && !g.chance(5) {
		name := one(g, schema.names...)
		if g.chance(10) {
			into[strings.ToUpper(name[:1])+name[1:]] = g.value(schema.Properties[name], 2)
			return
		}
		into[name] = g.value(schema.Properties[name], 2)
		return
	}
	into[g.name()] = g.anything(3)
}

func zero(v any) any {
	switch v.(type) {
	case string:
		return ""
	case bool:
		return false
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return 0
}

// pointer returns a path as an RFC 6901 JSON Pointer.
func pointer(path []any) string {
	var b strings.Builder
	for _, e := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(text(e)))
	}
	return b.String()
}
