package rule

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/gotype"
)

// Declared validates a struct and everything below by the table, as Kubernetes does for types whose rules are
// tags: an update does not validate the values that it leaves unchanged. old is a pointer to the old value, which
// may be nil. The Go functions of a Set do not apply.
func (c *Check) Declared(value, old any) {
	v, o := reflect.ValueOf(value).Elem(), reflect.ValueOf(old)
	if o.Kind() == reflect.Pointer {
		o = o.Elem() // invalid for nil
	}
	c.all.set.declaredOf(v.Type()).visit(c, v, o)
}

// DeclaredField is Declared for one field of a struct.
func (c *Check) DeclaredField(value, old any, name string) {
	v, o := reflect.ValueOf(value).Elem(), reflect.ValueOf(old).Elem()
	c.all.set.declaredFieldOf(fieldOf{v.Type(), name}).visit(c, v, o)
}

// A transition is a word that compares a value with the old one. A new object has an invalid old value. The result
// reports whether the change is allowed.
type transition func(c *Check, v, old reflect.Value, r rule) bool

// transitions has the words of the table that compare values. gated rejects a field whose gate is off.
var transitions = map[string]transition{
	"gated": func(c *Check, v, _ reflect.Value, r rule) bool {
		if _, there := present(v); !there || c.Gates.On(r.gate) {
			return true
		}
		c.Forbidden("")
		return false
	},
	"immutable": func(c *Check, _, _ reflect.Value, _ rule) bool { return c.stays(c.IsUpdate(), "field is immutable") },
	"immutable-gated": func(c *Check, _, _ reflect.Value, r rule) bool {
		return c.stays(c.IsUpdate() && c.Gates.On(r.gate), "field is immutable")
	},
	"no-set": func(c *Check, v, old reflect.Value, _ rule) bool {
		return c.stays(c.IsUpdate() && isSet(v) && !isSet(old), "field cannot be set once created")
	},
	"no-unset": func(c *Check, v, old reflect.Value, _ rule) bool {
		return c.stays(c.IsUpdate() && !isSet(v) && isSet(old), "field cannot be cleared once set")
	},
	"no-change": func(c *Check, v, old reflect.Value, _ rule) bool {
		return c.stays(c.IsUpdate() && isSet(v) && isSet(old), "field cannot be modified once set")
	},
	"same-items": sameItems,
	"growing": func(c *Check, v, old reflect.Value, _ rule) bool {
		if isSet(v) && isSet(old) && v.Elem().Int() < old.Elem().Int() {
			c.Invalid(v.Elem().Int(), fmt.Sprintf("may not be decreased from %d", old.Elem().Int()))
		}
		return true
	},
}

// stays adds an error for a change.
func (c *Check) stays(changed bool, detail string) bool {
	if changed {
		c.Invalid(nil, detail)
	}
	return !changed
}

// isSet reports whether there is a value. An unset field is a nil pointer.
func isSet(v reflect.Value) bool { return v.IsValid() && !v.IsZero() }

// sameItems rejects new and removed elements of a list.
func sameItems(c *Check, v, old reflect.Value, r rule) bool {
	if !c.IsUpdate() {
		return true
	}
	ok := true
	for i := range v.Len() {
		if !find(old, v.Index(i), r.keys).IsValid() {
			c.At(i).Forbidden("item may not be added")
			ok = false
		}
	}
	for i := 0; old.IsValid() && i < old.Len(); i++ {
		if !find(v, old.Index(i), r.keys).IsValid() {
			c.Forbidden("item may not be removed")
			ok = false
		}
	}
	return ok
}

// find returns the element of a list with the same keys, or an invalid value.
func find(list, e reflect.Value, keys []string) reflect.Value {
	for i := 0; list.IsValid() && i < list.Len() && keys != nil; i++ {
		if keyOf(list.Index(i), keys) == keyOf(e, keys) {
			return list.Index(i)
		}
	}
	return reflect.Value{}
}

// first are the words after which other words of the field do not apply if they fail.
var first = []string{"needed", "needed-by-tag", "set", "max-items", "gated", "immutable", "immutable-gated", "no-set", "no-unset", "no-change", "same-items"}

// fieldOf is a field of a type.
type fieldOf struct {
	of   reflect.Type
	name string
}

// declaredFieldOf returns the rules of a field, and not those of its neighbours.
func (s *Set) declaredFieldOf(key fieldOf) *declaredField {
	if f, ok := s.declared.Load(key); ok {
		return f.(*declaredField)
	}
	built := &declaredField{}
	for member := range gotype.Fields(key.of) {
		if member.JSONName == key.name {
			*built = s.declaredField(member, key.of, map[reflect.Type]*declared{})
		}
	}
	f, _ := s.declared.LoadOrStore(key, built)
	return f.(*declaredField)
}

// A declared has the rules of a type.
type declared struct {
	oneOf  []declaredField
	fields []declaredField
}

type declaredField struct {
	name        string
	index       []int
	first, then []rule
	keys        []string // of the elements of a list
	below       *declared
}

func (s *Set) declaredOf(t reflect.Type) *declared {
	if d, ok := s.declared.Load(t); ok {
		return d.(*declared)
	}
	d, _ := s.declared.LoadOrStore(t, s.buildDeclared(t, map[reflect.Type]*declared{}))
	return d.(*declared)
}

func (s *Set) buildDeclared(t reflect.Type, building map[reflect.Type]*declared) *declared {
	if d, ok := building[t]; ok {
		return d
	}
	d := &declared{}
	building[t] = d
	oneOf := table()[nameOf(t)][""].oneOf
	for member := range gotype.Fields(t) {
		f := s.declaredField(member, t, building)
		if slices.Contains(oneOf, f.name) {
			d.oneOf = append(d.oneOf, f)
		}
		if f.below != nil || len(f.first)+len(f.then) > 0 {
			d.fields = append(d.fields, f)
		}
	}
	return d
}

func (s *Set) declaredField(member gotype.Field, t reflect.Type, building map[reflect.Type]*declared) declaredField {
	line := table()[nameOf(t)][member.JSONName]
	field, _ := t.FieldByName(member.Name)
	f := declaredField{name: member.JSONName, index: field.Index, keys: line.mark.Keys}
	for _, r := range line.rules {
		if slices.Contains(first, r.name) {
			f.first = append(f.first, r)
		} else {
			f.then = append(f.then, r)
		}
	}
	if inner := elemOf(member.Type); ofAPI(inner) {
		f.below = s.buildDeclared(inner, building)
	}
	return f
}

func (d *declared) visit(c *Check, v, old reflect.Value) {
	d.one(c, v, old)
	for i := range d.fields {
		d.fields[i].visit(c, v, old)
	}
}

// one requires exactly one member of a union.
func (d *declared) one(c *Check, v, old reflect.Value) {
	if d.oneOf == nil {
		return
	}
	var all, there []string
	changed := !c.IsUpdate() || !old.IsValid()
	for _, f := range d.oneOf {
		all = append(all, "`"+f.name+"`")
		is := hasMember(v.FieldByIndex(f.index))
		if is {
			there = append(there, f.name)
		}
		changed = changed || is != hasMember(old.FieldByIndex(f.index))
	}
	switch {
	case !changed:
	case len(there) == 0:
		c.Add(field.Invalid(c.Path(), "", "must specify one of: "+strings.Join(all, ", ")))
	case len(there) > 1:
		c.Add(field.Invalid(c.Path(), "{"+strings.Join(there, ", ")+"}", "must specify exactly one of: "+strings.Join(all, ", ")))
	}
}

// hasMember reports whether a field of a union has a value. An empty list has none.
func hasMember(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.Len() > 0
	}
	return !v.IsZero()
}

// visit validates the field in a struct, unless it is unchanged.
func (f *declaredField) visit(c *Check, in, oldIn reflect.Value) {
	v, old := in.FieldByIndex(f.index), reflect.Value{}
	if oldIn.IsValid() {
		if old = oldIn.FieldByIndex(f.index); c.IsUpdate() && equality.Semantic.DeepEqual(v.Interface(), old.Interface()) {
			return
		}
	}
	c = c.child(f.name)
	ok := true
	for _, r := range f.first {
		ok = r.apply(c, v, old) && ok
	}
	if _, there := present(v); !ok || !there {
		return
	}
	for _, r := range f.then {
		r.apply(c, v, old)
	}
	if f.below != nil {
		f.descend(c, v, old)
	}
}

func (f *declaredField) descend(c *Check, v, old reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if old.IsValid() {
			old = old.Elem()
		}
		f.below.visit(c, v.Elem(), old)
	case reflect.Struct:
		f.below.visit(c, v, old)
	case reflect.Slice:
		for i := range v.Len() {
			e := v.Index(i)
			was := find(old, e, f.keys)
			if was.IsValid() && c.IsUpdate() && equality.Semantic.DeepEqual(e.Interface(), was.Interface()) {
				continue
			}
			f.below.visit(c.element(i), e, was)
		}
	}
}

func (r *rule) apply(c *Check, v, old reflect.Value) bool {
	if r.compare != nil {
		return r.compare(c, v, old, *r)
	}
	return r.check(c, v, *r)
}
