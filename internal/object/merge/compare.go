// Package merge compares objects, and brings changes of one into another one: three-way.
//
// It works on trees, and knows no kinds and no schemas. Elements of lists are identified by the fields that Kubernetes' lists have as
// keys (compare.go), or else by their index.
package merge

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object"
)

// A Difference is a field with two values. A value that is Absent does not exist.
type Difference struct {
	Path          string // as Kubernetes writes field paths: .spec.containers[name="web"].image
	Before, After any
}

// Absent is the value of a field that does not exist. It is no value of a tree.
var Absent any = absent{}

type absent struct{}

// Equal compares two values, of which any may be Absent.
func Equal(a, b any) bool {
	if a == Absent || b == Absent {
		return a == b
	}
	return object.Equal(a, b)
}

// Compare returns the differences between two objects, in the order of their paths. nil is an object
// without fields. The fields that change with each write are left out.
func Compare(before, after object.Tree) []Difference {
	return compare(nil, "", plain(before), plain(after))
}

// plain returns the object without the fields that change with each write.
func plain(o object.Tree) object.Tree {
	return Without(o, "managedFields", "resourceVersion", "generation")
}

// Without returns a copy of the object without fields of its metadata.
func Without(o object.Tree, fields ...string) object.Tree {
	out := maps.Clone(o)
	if out == nil {
		return object.Tree{}
	}
	if metadata, ok := o["metadata"].(object.Tree); ok {
		metadata = maps.Clone(metadata)
		for _, f := range fields {
			delete(metadata, f)
		}
		out["metadata"] = metadata
	}
	return out
}

// compare appends the differences at a path and below it.
func compare(all []Difference, path string, before, after any) []Difference {
	if Equal(before, after) {
		return all
	}
	if a, ok := before.(object.Tree); ok {
		if b, ok := after.(object.Tree); ok {
			for _, key := range Keys(a, b) {
				all = compare(all, path+"."+key, Field(a, key), Field(b, key))
			}
			return all
		}
	}
	a, isList := before.([]any)
	b, areLists := after.([]any)
	if !isList || !areLists {
		return append(all, Difference{path, before, after})
	}
	if by := KeyOf(a, b); by != nil && sameOrder(by, a, b) {
		for _, key := range union(by, a, b) {
			all = compare(all, path+key, element(by, a, key), element(by, b, key))
		}
		return all
	}
	for i := range max(len(a), len(b)) {
		all = compare(all, path+"["+strconv.Itoa(i)+"]", at(a, i), at(b, i))
	}
	return all
}

// Keys returns the keys of maps, sorted.
func Keys(all ...object.Tree) []string {
	seen := map[string]bool{}
	for _, t := range all {
		for key := range t {
			seen[key] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Field returns a field of a map, or Absent.
func Field(t object.Tree, key string) any {
	if v, ok := t[key]; ok {
		return v
	}
	return Absent
}

// at returns an element of a list, or Absent.
func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return Absent
}

// associative are the fields that identify the elements of lists, in the order of preference.
func associative() [][]string {
	return [][]string{{"uid"}, {"name"}, {"key"}, {"type"}, {"containerPort", "protocol"}, {"port", "protocol"},
		{"mountPath"}, {"devicePath"}, {"ip"}, {"topologyKey", "whenUnsatisfiable"}, {"id"}}
}

// KeyOf returns the fields that identify each element in each of the lists, or nil. Empty lists have any
// key, but not all lists may be empty.
func KeyOf(lists ...[]any) []string {
	for _, by := range associative() {
		elements := 0
		if !slices.ContainsFunc(lists, func(list []any) bool {
			elements += len(list)
			return !identifies(by, list)
		}) && elements > 0 {
			return by
		}
	}
	return nil
}

// identifies reports whether the fields are in all elements of a list, and differ.
func identifies(by []string, list []any) bool {
	seen := map[string]bool{}
	for _, e := range list {
		key := KeyText(by, e)
		if key == "" || seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// KeyText returns the key of an element as in a field path, or "" if it has none. A missing protocol is
// TCP, as in Kubernetes.
func KeyText(by []string, element any) string {
	t, ok := element.(object.Tree)
	if !ok {
		return ""
	}
	var parts []string
	for _, f := range by {
		v, ok := t[f]
		if !ok && f == "protocol" {
			v = "TCP"
		}
		switch v.(type) {
		case string, int64:
			parts = append(parts, f+"="+Text(v))
		default:
			return ""
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// KeyTexts returns the keys of the elements, in order.
func KeyTexts(by []string, list []any) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = KeyText(by, e)
	}
	return out
}

// element returns the element with a key, or Absent.
func element(by []string, list []any, key string) any {
	for _, e := range list {
		if KeyText(by, e) == key {
			return e
		}
	}
	return Absent
}

// union returns the keys of the elements of two lists: those of the first one, then the others.
func union(by []string, a, b []any) []string {
	keys := KeyTexts(by, a)
	for _, key := range KeyTexts(by, b) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// sameOrder reports whether the elements that two lists share have the same order in both.
func sameOrder(by []string, a, b []any) bool {
	shared := func(list, other []any) []string {
		others := KeyTexts(by, other)
		return slices.DeleteFunc(KeyTexts(by, list), func(key string) bool { return !slices.Contains(others, key) })
	}
	return slices.Equal(shared(a, b), shared(b, a))
}
