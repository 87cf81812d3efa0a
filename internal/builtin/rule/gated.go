package rule

import (
	"reflect"
	"slices"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/schema/gotype"
)

// Drop removes the fields of gates that are off from an object. All fields of a gate stay if the old object
// has a value in one of them. Either object may be nil.
func (t *Gated) Drop(gates *gate.Set, obj, old map[string]any) {
	if t.idle() {
		return
	}
	var off []gate.Name
	t.visit(obj, func(f *gatedField, parent map[string]any) {
		if parent[f.name] != nil && !gates.On(f.gate) && !slices.Contains(off, f.gate) {
			off = append(off, f.gate)
		}
	})
	if len(off) == 0 {
		return
	}
	t.visit(old, func(f *gatedField, parent map[string]any) {
		if i := slices.Index(off, f.gate); i >= 0 && f.used(parent) {
			off = slices.Delete(off, i, i+1)
		}
	})
	t.remove(obj, off)
}

// Gated are the fields of a Go type that belong to a feature gate, and the fields with such fields below.
type Gated struct {
	own   []gatedField
	lists []gatedList
	below []gatedBelow
}

type gatedField struct {
	name string
	gate gate.Name
	// table is true for a map: an empty one is as good as none, and so is an empty list.
	table bool
	// zero is the value that is as good as none, and free one that needs no gate; each nil for fields without one.
	zero, free any
	// quiet is true for a field that does not count as a use of its gate.
	quiet bool
	// uses are the fields of an object of which one must have a value, so that the object counts as a use; nil for any.
	uses []string
	// null is true for a field that is null without a value.
	null bool
}

// A gatedList is a list, such as the volumes of a pod. An element with the field is removed as a whole. Elements with
// its name are removed from the lists that refer to it, such as the mounts of each container.
type gatedList struct {
	name, field, with string
	gate              gate.Name
}

// remove removes the elements with the field.
func (l *gatedList) remove(parent map[string]any) {
	names := map[any]bool{}
	filter(parent, l.name, func(e map[string]any) bool {
		if e[l.field] == nil {
			return false
		}
		names[e["name"]] = true
		return true
	})
	for _, sibling := range parent {
		objects(sibling, func(obj map[string]any) {
			filter(obj, l.with, func(e map[string]any) bool { return names[e["name"]] })
		})
	}
}

// filter removes objects from a list of a parent. A list that becomes empty is removed, too.
func filter(parent map[string]any, list string, gone func(map[string]any) bool) {
	before, ok := parent[list].([]any)
	if !ok {
		return
	}
	after := slices.DeleteFunc(slices.Clone(before), func(e any) bool {
		obj, ok := e.(map[string]any)
		return ok && gone(obj)
	})
	switch {
	case len(after) == len(before):
	case len(after) == 0:
		delete(parent, list)
	default:
		parent[list] = after
	}
}

type gatedBelow struct {
	name string
	of   *Gated
	// table is true for a map of objects.
	table bool
	// alone is a gate without which an object that has become empty goes, too.
	alone gate.Name
}

// each calls a function with the value of the field, or with those in a map of objects.
func (b *gatedBelow) each(parent map[string]any, do func(v any)) {
	m, ok := parent[b.name].(map[string]any)
	if !b.table || !ok {
		do(parent[b.name])
		return
	}
	for _, v := range m {
		do(v)
	}
}

// used reports whether an object has a value in the field.
func (f *gatedField) used(parent map[string]any) bool {
	v, ok := parent[f.name]
	ok = ok && !f.quiet
	switch v := v.(type) {
	case nil:
		return false
	case []any:
		return ok && len(v) > 0
	case map[string]any:
		if len(f.uses) > 0 {
			return slices.ContainsFunc(f.uses, func(name string) bool { inner, _ := v[name].(map[string]any); return len(inner) > 0 })
		}
		return ok && (!f.table || len(v) > 0)
	}
	return ok && (f.zero == nil || v != f.zero) && (f.free == nil || v != f.free)
}

// freeing returns the fields as those of a list in which one field has a value that needs no gate, and none is quiet. With "", it
// returns the fields as they are.
func (t *Gated) freeing(field, value string) *Gated {
	i := slices.IndexFunc(t.own, func(f gatedField) bool { return f.name == field })
	if i < 0 {
		return t
	}
	out := *t
	out.own = slices.Clone(t.own)
	out.own[i].free = value
	for j := range out.own {
		out.own[j].quiet = false
	}
	return &out
}

func (t *Gated) idle() bool { return len(t.own)+len(t.below) == 0 }

// visit calls a function with each field of a gate that an object can have, and its parent.
func (t *Gated) visit(v any, each func(*gatedField, map[string]any)) {
	objects(v, func(obj map[string]any) {
		for i := range t.own {
			each(&t.own[i], obj)
		}
		for _, b := range t.below {
			b.each(obj, func(v any) { b.of.visit(v, each) })
		}
	})
}

// remove removes the fields of some gates.
func (t *Gated) remove(v any, off []gate.Name) {
	objects(v, func(obj map[string]any) {
		for _, l := range t.lists {
			if slices.Contains(off, l.gate) {
				l.remove(obj)
			}
		}
		for _, f := range t.own {
			if v := obj[f.name]; slices.Contains(off, f.gate) && v != nil && v != f.free {
				delete(obj, f.name)
				if f.null {
					obj[f.name] = nil
				}
			}
		}
		for _, b := range t.below {
			m, _ := obj[b.name].(map[string]any)
			fields := len(m)
			b.each(obj, func(v any) { b.of.remove(v, off) })
			if fields > 0 && len(m) == 0 && slices.Contains(off, b.alone) {
				delete(obj, b.name)
			}
		}
	})
}

// objects calls a function with an object, or with those in a list.
func objects(v any, each func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		if v != nil {
			each(v)
		}
	case []any:
		for _, e := range v {
			objects(e, each)
		}
	}
}

// GatedOf returns the fields of a type that belong to gates.
func GatedOf(t reflect.Type) *Gated { return gatedOf(t, map[reflect.Type]*Gated{}) }

func gatedOf(t reflect.Type, building map[reflect.Type]*Gated) *Gated {
	if known, ok := building[t]; ok {
		return known
	}
	out := &Gated{}
	building[t] = out
	lines := table()[nameOf(t)]
	for member := range gotype.Fields(t) {
		line, inner, kind := lines[member.JSONName], elemOf(member.Type), member.Type.Kind()
		if line.gate != "" {
			f := gatedField{name: member.JSONName, gate: line.gate, quiet: line.quiet, uses: line.uses, table: kind == reflect.Map}
			switch kind {
			case reflect.String:
				f.zero = ""
			case reflect.Bool:
				f.zero = false
			case reflect.Pointer:
				f.null = !member.OmitEmpty
			}
			out.own = append(out.own, f)
		}
		if line.whole != "" {
			out.lists = append(out.lists, gatedList{member.JSONName, line.whole, line.with, table()[nameOf(inner)][line.whole].gate})
		}
		if line.ungated || inner.Kind() != reflect.Struct || gotype.ReadsItself(inner) {
			continue
		}
		if of := gatedOf(inner, building).freeing(line.freeField, line.freeValue); !of.idle() {
			out.below = append(out.below, gatedBelow{member.JSONName, of, kind == reflect.Map, line.alone})
		}
	}
	return out
}
