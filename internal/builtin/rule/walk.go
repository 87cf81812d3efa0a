package rule

import (
	"reflect"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/schema/gotype"
)

// Walk validates a value and everything in it: the fields of every struct by the table, and then
// every struct by the functions for its type. steps lead to the value.
func (c *Check) Walk(v any, steps ...any) {
	value := reflect.ValueOf(v)
	c.all.set.walk(elemOf(value.Type())).visit(c.At(steps...), value)
}

// Fields validates the fields of one struct by the table, and nothing below.
func (c *Check) Fields(v any, steps ...any) {
	value := reflect.ValueOf(v).Elem()
	c.all.set.walk(value.Type()).members(c.At(steps...), value)
}

// A walk has the steps to validate one type.
type walk struct {
	fields  []walkField
	inlined []inlined
	custom  func(*Check, reflect.Value)
}

// An inlined struct has its fields in the JSON object of the parent, but its own function.
type inlined struct {
	index  int
	custom func(*Check, reflect.Value)
}

// A walkField is a field with rules, or with rules below.
type walkField struct {
	name  string
	index []int
	rules []rule
	below *walk
}

func (s *Set) walk(t reflect.Type) *walk {
	if w, ok := s.walks.Load(t); ok {
		return w.(*walk)
	}
	w := s.buildWalk(t, map[reflect.Type]*walk{})
	known, _ := s.walks.LoadOrStore(t, w)
	return known.(*walk)
}

func (s *Set) buildWalk(t reflect.Type, building map[reflect.Type]*walk) *walk {
	if w, ok := building[t]; ok {
		return w
	}
	w := &walk{custom: s.checks[t]}
	building[t] = w
	if t.Kind() != reflect.Struct {
		return w
	}
	for i := range t.NumField() {
		if f := t.Field(i); isInlined(f) && s.checks[f.Type] != nil {
			w.inlined = append(w.inlined, inlined{i, s.checks[f.Type]})
		}
	}
	lines := table()[nameOf(t)]
	for member := range gotype.Fields(t) {
		if lines[member.JSONName].declared {
			continue
		}
		f := walkField{name: member.JSONName, rules: lines[member.JSONName].rules}
		field, _ := t.FieldByName(member.Name)
		f.index = field.Index
		if inner := elemOf(member.Type); inner.Kind() == reflect.Struct && !gotype.ReadsItself(inner) && !s.apart[inner] {
			if below := s.buildWalk(inner, building); !below.idle() {
				f.below = below
			}
		}
		if f.rules != nil || f.below != nil {
			w.fields = append(w.fields, f)
		}
	}
	return w
}

func (w *walk) idle() bool { return w.custom == nil && len(w.fields) == 0 && len(w.inlined) == 0 }

// isInlined reports whether a field is an inlined struct.
func isInlined(f reflect.StructField) bool {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct
}

// visit validates a value of the type, or the elements of a list or a map.
func (w *walk) visit(c *Check, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.visit(c, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.visit(c.element(i), v.Index(i))
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			// The value of a map is not addressable.
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(i.Value())
			w.visit(c.AtKey(i.Key().String()), e)
		}
	case reflect.Struct:
		failed := w.members(c, v)
		for _, in := range w.inlined {
			in.custom(c, v.Field(in.index))
		}
		if w.custom != nil {
			w.custom(c, v)
		}
		for i := range w.fields {
			if f := &w.fields[i]; f.below != nil && !slices.Contains(failed, i) {
				f.below.visit(c.child(f.name), v.FieldByIndex(f.index))
			}
		}
	}
}

// members validates the fields by the table. It returns those that failed, which are not walked.
func (w *walk) members(c *Check, v reflect.Value) (failed []int) {
	var at *Check // of all fields in turn: no word keeps it
	for i := range w.fields {
		f := &w.fields[i]
		if f.rules == nil {
			continue
		}
		if at == nil {
			at = c.child(f.name)
		} else {
			at.name, at.path = f.name, nil
		}
		value := v.FieldByIndex(f.index)
		for _, r := range f.rules {
			if !r.check(at, value, r) {
				failed = append(failed, i)
				break
			}
		}
	}
	return failed
}
