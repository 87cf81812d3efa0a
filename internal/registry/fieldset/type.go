// Package fieldset computes sets of fields for server-side apply: the fields of an object by the types
// of its schema, the fields in which two objects differ, and the merge of an object with an applied
// configuration.
//
// A Set is the tree that metadata.managedFields shows as fieldsV1. So results are stored directly, and
// unchanged sets are not decoded. For objects that conform to their type, the results equal those of
// structured-merge-diff, byte for byte. Other objects are left to the library, which rejects them with
// its own messages.
//
// The package does not know managers, versions, or where objects come from.
package fieldset

import (
	"slices"
	"sort"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/anykind/anykind/internal/object"
)

// A Type describes the structure of a value for managed fields: a scalar, a list, a map, or any of
// several of them. It is immutable; types may form cycles.
type Type struct {
	parts  parts
	scalar schema.Scalar
	list   *list
	fields *mapping
}

// parts are the forms that a value may have.
type parts uint8

const (
	mapPart parts = 1 << iota
	scalarPart
	listPart
)

type list struct {
	of     *Type
	atomic bool
	keys   []listKey // in order; none for a set
}

type listKey struct {
	name  string
	def   any  // default of a missing key
	plain bool // the name needs no escapes
}

type mapping struct {
	declared map[string]field
	rest     *Type // of fields that are not declared; nil allows none
	atomic   bool
	unknown  bool // the fields have no known types
}

type field struct {
	*Type
	key string // of the field in a Set
}

// TypeOf returns a type of a schema of structured-merge-diff.
func TypeOf(s *schema.Schema, ref schema.TypeRef) *Type {
	c := compiler{schema: s, named: map[typeName]*Type{}}
	return c.ref(ref)
}

type typeName struct {
	name         string
	relationship schema.ElementRelationship
}

type compiler struct {
	schema *schema.Schema
	named  map[typeName]*Type
}

func (c *compiler) ref(r schema.TypeRef) *Type {
	relationship := schema.ElementRelationship("")
	if r.ElementRelationship != nil {
		relationship = *r.ElementRelationship
	}
	t := &Type{}
	atom := r.Inlined
	if r.NamedType != nil {
		name := typeName{*r.NamedType, relationship}
		if known := c.named[name]; known != nil {
			return known
		}
		c.named[name] = t // now, because a type may contain itself
		def, _ := c.schema.FindNamedType(*r.NamedType)
		atom = def.Atom
	}
	c.atom(t, atom)
	switch {
	case r.ElementRelationship == nil:
	case t.fields != nil:
		t.fields.atomic = relationship == schema.Atomic
	case t.list != nil:
		t.list.atomic = relationship == schema.Atomic
	default:
		*t = Type{} // no value conforms to it
	}
	return t
}

func (c *compiler) atom(t *Type, a schema.Atom) {
	if a.Scalar != nil {
		t.parts, t.scalar = t.parts|scalarPart, *a.Scalar
	}
	if a.List != nil {
		t.parts |= listPart
		t.list = &list{of: c.ref(a.List.ElementType), atomic: a.List.ElementRelationship != schema.Associative}
		t.list.keys = c.keys(a.List)
	}
	if a.Map == nil {
		return
	}
	t.parts |= mapPart
	m := &mapping{atomic: a.Map.ElementRelationship == schema.Atomic, unknown: untyped(a.Map)}
	t.fields = m
	if a.Map.ElementType != (schema.TypeRef{}) {
		m.rest = c.ref(a.Map.ElementType)
	}
	if len(a.Map.Fields) > 0 {
		m.declared = make(map[string]field, len(a.Map.Fields))
		for _, f := range a.Map.Fields {
			m.declared[f.Name] = field{c.ref(f.Type), "f:" + f.Name}
		}
	}
}

// untyped reports whether the values of a map determine their types.
func untyped(m *schema.Map) bool {
	if m.Fields != nil {
		return false
	}
	if name := m.ElementType.NamedType; name != nil {
		return *name == "__untyped_deduced_"
	}
	scalar := m.ElementType.Inlined.Scalar
	return scalar != nil && *scalar == schema.Untyped
}

func (c *compiler) keys(l *schema.List) []listKey {
	var keys []listKey
	element, _ := c.schema.Resolve(l.ElementType)
	for _, name := range l.Keys {
		k := listKey{name: name, plain: plain(name)}
		if element.Map != nil {
			f, _ := element.Map.FindField(name)
			k.def = f.Default
		}
		keys = append(keys, k)
	}
	sort.SliceStable(keys, func(i, k int) bool { return keys[i].name < keys[k].name })
	return keys
}

// child returns the type of a field and its key in a Set. The type is nil if the field is not allowed.
func (m *mapping) child(name string) (t *Type, key string, declared bool) {
	if f, ok := m.declared[name]; ok {
		return f.Type, f.key, true
	}
	return m.rest, "", false
}

// keyOf returns the key of a child, computed if it is not cached.
func keyOf(name, key string) string {
	if key != "" {
		return key
	}
	return "f:" + name
}

// of returns the part of t that fits v, or all of t for null and for a value that fits none.
func (t *Type) of(v any) parts {
	var p parts
	switch v.(type) {
	case object.Tree:
		p = mapPart
	case []any:
		p = listPart
	case string, int64, float64, bool:
		p = scalarPart
	}
	if t.parts&p != 0 {
		return p
	}
	return t.parts
}

// first returns the part that takes precedence.
func (p parts) first() parts {
	switch {
	case p&mapPart != 0:
		return mapPart
	case p&scalarPart != 0:
		return scalarPart
	default:
		return p & listPart
	}
}

// Conforms reports whether v is of the type. twice allows duplicate elements in lists.
func (t *Type) Conforms(v any, twice bool) bool {
	part := t.of(v).first()
	if v == nil {
		return part != 0
	}
	switch part {
	case mapPart:
		m, ok := v.(object.Tree)
		if !ok {
			return false
		}
		for name, e := range m {
			if c, _, _ := t.fields.child(name); c == nil || !c.Conforms(e, twice) {
				return false
			}
		}
		return true
	case scalarPart:
		return t.isScalar(v)
	case listPart:
		l, ok := v.([]any)
		return ok && t.list.conforms(l, twice)
	default:
		return false
	}
}

func (t *Type) isScalar(v any) bool {
	switch v.(type) {
	case int64, float64:
		return t.scalar == schema.Numeric || t.scalar == schema.Untyped
	case string:
		return t.scalar == schema.String || t.scalar == schema.Untyped
	case bool:
		return t.scalar == schema.Boolean || t.scalar == schema.Untyped
	default:
		return false
	}
}

func (l *list) conforms(items []any, twice bool) bool {
	for _, e := range items {
		if !l.atomic && !l.keyed(e) || !l.of.Conforms(e, twice) {
			return false
		}
	}
	if l.atomic || twice || len(items) < 2 {
		return true
	}
	keys, ok := l.index(items)
	return ok && !keys.repeats
}

// keyed reports whether v has a key, as every element must.
func (l *list) keyed(v any) bool {
	t, isTree := v.(object.Tree)
	if len(l.keys) == 0 {
		_, isList := v.([]any)
		return v != nil && !isTree && !isList
	}
	if !isTree {
		return false
	}
	for _, k := range l.keys {
		if _, ok := t[k.name]; ok || k.def != nil {
			return true
		}
	}
	return false
}

// key returns the key of an element in a Set. It reports false for a value without a key.
func (l *list) key(v any) (string, bool) {
	if !l.keyed(v) {
		return "", false
	}
	var buf [64]byte
	if len(l.keys) == 0 {
		if b, ok := appendPlain(append(buf[:0], "v:"...), v); ok {
			return string(b), true
		}
		return serialized(fieldpath.ValueElement(value.NewValueInterface(v)))
	}
	t := v.(object.Tree)
	b, found := append(buf[:0], "k:{"...), 0
	for _, k := range l.keys {
		e, ok := t[k.name]
		if !ok {
			if e = k.def; e == nil {
				continue
			}
		}
		if found++; found > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), k.name...), `":`...)
		if b, ok = appendPlain(b, e); !ok || !k.plain {
			return l.slowKey(t)
		}
	}
	return string(append(b, '}')), true
}

// slowKey is key for keys that need escapes.
func (l *list) slowKey(t object.Tree) (string, bool) {
	var fields value.FieldList
	for _, k := range l.keys {
		e, ok := t[k.name]
		if !ok {
			e = k.def
		}
		if ok || e != nil {
			fields = append(fields, value.Field{Name: k.name, Value: value.NewValueInterface(e)})
		}
	}
	return serialized(fieldpath.KeyElement(fields...))
}

func serialized(e fieldpath.PathElement) (string, bool) {
	s, err := fieldpath.SerializePathElement(e)
	return s, err == nil
}

// An index finds the elements of a list by their keys.
type index struct {
	keys    []string
	at      map[string][]int // nil for few
	repeats bool
}

// few limits the length of lists that are searched without a map.
const few = 8

func (l *list) index(items []any) (index, bool) {
	x := index{keys: make([]string, len(items))}
	if len(items) > few {
		x.at = make(map[string][]int, len(items))
	}
	for i, e := range items {
		key, ok := l.key(e)
		if !ok {
			return index{}, false
		}
		x.repeats = x.repeats || x.find(key) >= 0
		x.keys[i] = key
		if x.at != nil {
			x.at[key] = append(x.at[key], i)
		}
	}
	return x, true
}

// find returns the index of the first element with a key, or -1.
func (x *index) find(key string) int {
	if x.at == nil {
		return slices.Index(x.keys, key)
	}
	if at := x.at[key]; len(at) > 0 {
		return at[0]
	}
	return -1
}

// all returns the indexes of the elements with a key.
func (x *index) all(key string) []int {
	if x.at != nil {
		return x.at[key]
	}
	var at []int
	for i, k := range x.keys {
		if k == key {
			at = append(at, i)
		}
	}
	return at
}
