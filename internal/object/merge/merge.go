package merge

import (
	"slices"
	"strconv"

	"github.com/anykind/anykind/internal/object"
)

// A Conflict is a field that a change set and that has another value now.
type Conflict struct {
	Path string
	// Before is the value before the change, After the one that it set, and Now the present one.
	Before, After, Now any
}

// ServerFields are the fields of the metadata that a client cannot set back.
func ServerFields() []string {
	return []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}
}

// Undo returns the present object with the fields that a change set as they were before it. A field that
// has another value now is a conflict. It keeps its value, or gets the one before the change if force is
// set. No argument is changed; nil is an object that does not exist.
//
// The result is nil for an object that the change created, if no field is in conflict. The present
// object keeps the fields that the server sets.
func Undo(before, after, now object.Tree, force bool) (object.Tree, []Conflict) {
	m := merging{force: force}
	value := func(o object.Tree) any {
		if o == nil {
			return Absent
		}
		return Without(o, ServerFields()...)
	}
	result, ok := m.merge("", value(before), value(after), value(now)).(object.Tree)
	if !ok {
		return nil, m.conflicts
	}
	return with(result, now, ServerFields()), m.conflicts
}

// with returns a copy of an object with the given metadata fields of another object. The other object can be nil.
func with(o, from object.Tree, fields []string) object.Tree {
	out := object.CloneTree(o)
	metadata, _ := from["metadata"].(object.Tree)
	for _, f := range fields {
		if v, ok := metadata[f]; ok {
			object.Metadata(out)[f] = object.Clone(v)
		}
	}
	return out
}

type merging struct {
	force     bool
	conflicts []Conflict
}

// merge returns the value of a field without a change.
func (m *merging) merge(path string, before, after, now any) any {
	switch {
	case Equal(before, after), Equal(now, before):
		return now
	case Equal(now, after):
		return before
	}
	b, before1 := asMap(before)
	a, after1 := asMap(after)
	n, isMap := now.(object.Tree)
	if isMap && before1 && after1 && (before != Absent || path != "") {
		return m.maps(path, before, b, a, n)
	}
	if list, ok := m.lists(path, before, after, now); ok {
		return list
	}
	return m.conflict(path, before, after, now)
}

// conflict records a conflict and returns the value of the field.
func (m *merging) conflict(path string, before, after, now any) any {
	if path == "" && before == Absent { // a created object that was changed: name the fields
		for _, d := range compare(nil, path, after, now) {
			m.conflicts = append(m.conflicts, Conflict{d.Path, Absent, d.Before, d.After})
		}
	} else {
		m.conflicts = append(m.conflicts, Conflict{path, before, after, now})
	}
	if m.force {
		return before
	}
	return now
}

// asMap returns a map; that of Absent is empty.
func asMap(v any) (object.Tree, bool) {
	if v == Absent {
		return nil, true
	}
	t, ok := v.(object.Tree)
	return t, ok
}

func (m *merging) maps(path string, whole any, before, after, now object.Tree) any {
	out := make(object.Tree, len(now))
	for _, key := range Keys(before, after, now) {
		if v := m.merge(path+"."+key, Field(before, key), Field(after, key), Field(now, key)); v != Absent {
			out[key] = v
		}
	}
	if len(out) == 0 && whole == Absent {
		return Absent
	}
	return out
}

// lists merges lists by the keys of their elements, or by index if all have the same length.
func (m *merging) lists(path string, before, after, now any) (any, bool) {
	b, okB := before.([]any)
	a, okA := after.([]any)
	n, okN := now.([]any)
	if !okN || !okB && before != Absent || !okA && after != Absent {
		return nil, false
	}
	if by := KeyOf(b, a, n); by != nil && sameOrder(by, b, a) {
		out := m.byKey(path, by, b, a, n)
		if len(out) == 0 && before == Absent {
			return Absent, true
		}
		return out, true
	}
	if len(b) != len(a) || len(a) != len(n) {
		return nil, false
	}
	out := make([]any, len(n))
	for i := range n {
		out[i] = m.merge(path+"["+strconv.Itoa(i)+"]", b[i], a[i], n[i])
	}
	return out, true
}

// byKey keeps the order of the present list. An element that returns comes after the one that it
// followed before the change.
func (m *merging) byKey(path string, by []string, before, after, now []any) []any {
	out := []any{}
	for _, key := range KeyTexts(by, now) {
		if v := m.merge(path+key, element(by, before, key), element(by, after, key), element(by, now, key)); v != Absent {
			out = append(out, v)
		}
	}
	present := KeyTexts(by, now)
	place := 0
	for i, key := range KeyTexts(by, before) {
		if slices.Contains(present, key) {
			if at := slices.Index(KeyTexts(by, out), key); at >= 0 {
				place = at + 1
			}
			continue
		}
		v := m.merge(path+key, before[i], element(by, after, key), Absent)
		if v != Absent {
			out = slices.Insert(out, place, v)
			place++
		}
	}
	return out
}

// Repeat returns the present object with the change from one object to another: each field that differs between
// the two has the value after the change. The present object keeps its managedFields, and its generation grows with that of
// the change. No argument is changed.
func Repeat(before, after, now object.Tree) object.Tree {
	own := []string{"managedFields", "generation"}
	m := merging{force: true}
	result, ok := m.merge("", Without(after, own...), Without(before, own...), Without(now, own...)).(object.Tree)
	if !ok {
		return now
	}
	result = with(result, now, own)
	if object.Generation(before) != object.Generation(after) {
		object.SetGeneration(result, object.Generation(now)+1)
	}
	return result
}
