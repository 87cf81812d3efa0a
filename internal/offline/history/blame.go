package history

import (
	"slices"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/merge"
)

// A blamed value is a value with the change that set it, and its fields or elements.
type blamed struct {
	by       *Change // nil if the history does not reach back that far
	value    any
	fields   map[string]*blamed
	elements []*blamed
}

// Blame returns each line of an object as YAML, with the change that last set the field in it. The
// object has the state after the last change; an earlier value of a first change has no change.
// managedFields are left out.
func Blame(changes []Change) []Line {
	var b *blamed
	for i := range changes {
		c := &changes[i]
		if c.Type == Deleted || c.Object == nil { // the next change has the state before it
			continue
		}
		if c.Before != nil {
			b = b.set(merge.Without(c.Before, "managedFields"), nil) // no difference, unless changes are missing
		} else {
			b = nil
		}
		b = b.set(merge.Without(c.Object, "managedFields"), c)
	}
	if n := len(changes); n > 0 && changes[n-1].Type == Deleted && changes[n-1].Before != nil {
		b = b.set(merge.Without(changes[n-1].Before, "managedFields"), nil)
	}
	return b.lines()
}

// set returns the value with the change for each part of it that differs. b may be nil.
func (b *blamed) set(value any, by *Change) *blamed {
	if b == nil {
		b = &blamed{value: merge.Absent}
	}
	switch v := value.(type) {
	case object.Tree:
		out := &blamed{by: by, value: value, fields: make(map[string]*blamed, len(v))}
		if _, was := b.value.(object.Tree); was {
			out.by = b.by
		}
		for key, e := range v {
			out.fields[key] = b.fields[key].set(e, by)
		}
		return out
	case []any:
		out := &blamed{by: by, value: value, elements: make([]*blamed, len(v))}
		before, was := b.value.([]any)
		if was {
			out.by = b.by
		}
		keys := merge.KeyOf(before, v)
		for i, e := range v {
			out.elements[i] = b.element(keys, before, i, e).set(e, by)
		}
		return out
	}
	if merge.Equal(b.value, value) {
		by = b.by
	}
	return &blamed{by: by, value: value}
}

// element returns the earlier element of a list for the one at an index, or nil.
func (b *blamed) element(keys []string, before []any, i int, now any) *blamed {
	if keys != nil {
		i = slices.Index(merge.KeyTexts(keys, before), merge.KeyText(keys, now))
	}
	if i < 0 || i >= len(b.elements) {
		return nil
	}
	return b.elements[i]
}
