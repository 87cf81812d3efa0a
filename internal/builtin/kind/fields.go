package kind

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/object"
)

// Value returns the value at a path of field names, or nil.
func Value(obj map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		obj, _ = obj[name].(map[string]any)
	}
	return obj[path[len(path)-1]]
}

// Text returns the string at a path, or "".
func Text(obj map[string]any, path ...string) string {
	s, _ := Value(obj, path...).(string)
	return s
}

// Tree returns the object at a path, or nil.
func Tree(obj map[string]any, path ...string) map[string]any {
	m, _ := Value(obj, path...).(map[string]any)
	return m
}

// List returns the list at a path, or nil.
func List(obj map[string]any, path ...string) []any {
	l, _ := Value(obj, path...).([]any)
	return l
}

// Child returns the object in a field. It creates a missing one.
func Child(obj map[string]any, name string) map[string]any {
	m, ok := obj[name].(map[string]any)
	if !ok {
		m = map[string]any{}
		obj[name] = m
	}
	return m
}

// Put sets a field to a copy of value, or removes it if there is none.
func Put(obj map[string]any, name string, value any) {
	if value == nil {
		delete(obj, name)
		return
	}
	obj[name] = object.Clone(value)
}

// SetDefault sets a field that is empty or missing.
func SetDefault(obj map[string]any, name, value string) {
	if s, _ := obj[name].(string); s == "" && obj != nil {
		obj[name] = value
	}
}

// SetMissing sets a missing field. It is for fields that are pointers in Go, where an empty value
// is present.
func SetMissing(obj map[string]any, name string, value any) {
	if obj[name] == nil && obj != nil {
		obj[name] = value
	}
}

// EmptyNulls replaces nulls in a map of bytes by the values that Kubernetes would store.
func EmptyNulls(obj map[string]any, name string) {
	for key, v := range Tree(obj, name) {
		if v == nil {
			Tree(obj, name)[key] = ""
		}
	}
}

// Pairs returns the map of strings at a path.
func Pairs(obj map[string]any, path ...string) map[string]string {
	out := map[string]string{}
	for k, v := range Tree(obj, path...) {
		out[k], _ = v.(string)
	}
	return out
}

// Texts returns the list of strings at a path.
func Texts(obj map[string]any, path ...string) []string {
	var out []string
	for _, v := range List(obj, path...) {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// ValueOf decodes an object into its Go type, nil for none. Fields that do not fit the type are
// dropped.
func ValueOf[T any](obj map[string]any) *T { return valueOf(reflect.TypeFor[T](), obj).(*T) }

// valueOf returns a pointer to a value of the type, which is nil for no object.
func valueOf(t reflect.Type, obj map[string]any) any {
	if obj == nil {
		return reflect.Zero(reflect.PointerTo(t)).Interface()
	}
	out, _ := object.NewValue(t, obj)
	return out
}

// Alike reports whether the values at a path of two objects, decoded as the Go type T, are equal.
// Empty and missing lists and maps are equal.
func Alike[T any](obj, old map[string]any, path ...string) bool {
	now, was := Tree(obj, path...), Tree(old, path...)
	return object.Equal(now, was) || equality.Semantic.DeepEqual(ValueOf[T](now), ValueOf[T](was))
}

// SortedKeys returns the sorted keys of a map.
func SortedKeys[M ~map[K]V, K cmp.Ordered, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }
