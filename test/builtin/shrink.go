package builtin

import (
	"maps"
	"slices"
)

// Shrink removes from what a case sends all that is not needed for a difference of the
// class, one field or element after another, and returns what is left.
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
				continue // it went with another
			}
			if try := (Case{c.Kind, c.Subresource, c.Old, smaller}); still(try) {
				c, shrunk = try, true
			}
		}
	}
	return c.New
}

// pathsOf are the paths of everything in a value, what is outside before what is inside
// and the last element of a list first.
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
