package object

import "time"

// Tree is a decoded object. Its values are nil, bool, int64, float64, string, []any and Tree.
type Tree = map[string]any

// Metadata returns the metadata of t, and creates it if it is missing. A metadata that is not an
// object is replaced.
func Metadata(t Tree) Tree {
	if m, ok := t["metadata"].(Tree); ok {
		return m
	}
	m := Tree{}
	t["metadata"] = m
	return m
}

// MetaString returns a string field of t's metadata, or "".
func MetaString(t Tree, field string) string {
	m, _ := t["metadata"].(Tree)
	s, _ := m[field].(string)
	return s
}

// SetMetaString sets a string field of t's metadata; "" removes it.
func SetMetaString(t Tree, field, value string) {
	if value == "" {
		if m, ok := t["metadata"].(Tree); ok {
			delete(m, field)
		}
		return
	}
	Metadata(t)[field] = value
}

// Annotation returns an annotation of t, and whether there is one.
func Annotation(t Tree, key string) (value string, ok bool) {
	m, _ := t["metadata"].(Tree)
	all, _ := m["annotations"].(Tree)
	value, ok = all[key].(string)
	return value, ok
}

// SetAnnotation sets an annotation of t.
func SetAnnotation(t Tree, key, value string) {
	m := Metadata(t)
	all, ok := m["annotations"].(Tree)
	if !ok {
		all = Tree{}
		m["annotations"] = all
	}
	all[key] = value
}

// Name, Namespace, UID and ResourceVersion return the most common fields of metadata.
func Name(t Tree) string            { return MetaString(t, "name") }
func Namespace(t Tree) string       { return MetaString(t, "namespace") }
func UID(t Tree) string             { return MetaString(t, "uid") }
func ResourceVersion(t Tree) string { return MetaString(t, "resourceVersion") }

// APIVersion and Kind name the type of t.
func APIVersion(t Tree) string { s, _ := t["apiVersion"].(string); return s }
func Kind(t Tree) string       { s, _ := t["kind"].(string); return s }

// Generation returns metadata.generation, or 0.
func Generation(t Tree) int64 {
	m, _ := t["metadata"].(Tree)
	g, _ := m["generation"].(int64)
	return g
}

// SetGeneration sets metadata.generation.
func SetGeneration(t Tree, g int64) { Metadata(t)["generation"] = g }

// Deleting reports whether t has a deletionTimestamp.
func Deleting(t Tree) bool { return MetaString(t, "deletionTimestamp") != "" }

// DeletionTime returns the deletionTimestamp of t, and false if it has none.
func DeletionTime(t Tree) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, MetaString(t, "deletionTimestamp"))
	return at, err == nil
}

// Finalizers returns metadata.finalizers.
func Finalizers(t Tree) []string {
	m, _ := t["metadata"].(Tree)
	list, _ := m["finalizers"].([]any)
	out := make([]string, 0, len(list))
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// SetFinalizers sets metadata.finalizers; none removes the field.
func SetFinalizers(t Tree, finalizers []string) {
	if len(finalizers) == 0 {
		delete(Metadata(t), "finalizers")
		return
	}
	list := make([]any, len(finalizers))
	for i, f := range finalizers {
		list[i] = f
	}
	Metadata(t)["finalizers"] = list
}

// Timestamp formats a time as in metadata.
func Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// MaxDepth limits the nesting of arrays and objects. Deeper JSON is not decoded.
const MaxDepth = 10_000

// Deeper reports whether v nests arrays and objects more than levels deep.
func Deeper(v any, levels int) bool {
	switch v := v.(type) {
	case Tree:
		if levels == 0 {
			return true
		}
		for _, e := range v {
			if Deeper(e, levels-1) {
				return true
			}
		}
	case []any:
		if levels == 0 {
			return true
		}
		for _, e := range v {
			if Deeper(e, levels-1) {
				return true
			}
		}
	}
	return false
}

// Clone returns a deep copy of v.
func Clone(v any) any {
	switch v := v.(type) {
	case Tree:
		return CloneTree(v)
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = Clone(v[i])
		}
		return out
	default:
		return v
	}
}

// CloneTree returns a deep copy of an object.
func CloneTree(t Tree) Tree {
	if t == nil {
		return nil
	}
	out := make(Tree, len(t))
	for k, v := range t {
		out[k] = Clone(v)
	}
	return out
}

// Equal reports whether two values are the same JSON. An integer and a float of equal value are
// equal.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case Tree:
		b, ok := b.(Tree)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !Equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case int64:
		if f, ok := b.(float64); ok {
			return float64(a) == f
		}
		return any(a) == b
	case float64:
		if i, ok := b.(int64); ok {
			return a == float64(i)
		}
		return any(a) == b
	default:
		return a == b
	}
}
