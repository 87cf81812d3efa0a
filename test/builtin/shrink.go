package builtin

import (
	"maps"
	"slices"
)

// Shrink removes one field or element after another from the object of a case, as long as the
// difference of the class remains, and returns the rest.
func Shrink(c Case, still func(Case) bool, tries int) Object {
	for shrunk := true; shrunk; {
		shrunk = false
		for _, path := range pathsOf(nil, c.New) {
			if path[0] == "metadata" || path[0] == "apiVersion" || path[0] == "kind" {
				continue
			}
			if tries--; tries < 0 {
				return c.New
			}
			smaller := Mutation{Path: path, Value: removed{}}.Apply(c.New)
			if smaller == nil {
				continue // its parent was removed
			}
			if try := (Case{c.Kind, c.Subresource, c.Old, smaller}); still(try) {
				c, shrunk = try, true
			}
		}
	}
	return c.New
}

// pathsOf returns the paths of all parts of a value: outer before inner, and lists from the end.
func pathsOf(at []any, v any) (out [][]any) {
	add := func(key, v any) {
		path := append(slices.Clone(at), key)
		out = append(append(out, path), pathsOf(path, v)...)
	}
	switch v := v.(type) {
	case Object:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			add(k, v[k])
		}
	case []any:
		for i := len(v) - 1; i >= 0; i-- {
			add(i, v[i])
		}
	}
	return out
}
