package rule

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/resource"
)

// A Check looks at one place in an object that is written, and collects what is wrong
// with it. Checks of other places of the same object are made of it by At.
type Check struct {
	context.Context
	// Change is the write. Rules read typed values; what else is told of a write is here.
	*resource.Change

	all    *findings
	parent *Check
	name   string // of the field of its parent, or the key of its map
	index  int    // in the list that its parent is, or -1
	key    bool   // name is a key of a map
	path   *field.Path
}

// findings are what a Check and those made of it have found.
type findings struct {
	set      *Set
	errors   field.ErrorList
	warnings []string
	values   []any // see With
}

// NewCheck returns a Check of a whole object by the rules of a Set.
func NewCheck(ctx context.Context, c *resource.Change, set *Set) *Check {
	all := &findings{set: set}
	if set != nil {
		all.values = slices.Clone(set.given)
	}
	return &Check{Context: ctx, Change: c, all: all, index: -1}
}

// Apart returns a Check of the whole object by the same rules, which collects what it
// finds for itself.
func (c *Check) Apart() *Check { return NewCheck(c.Context, c.Change, c.all.set) }

// At returns a Check of a place below: a field for each string, an element of a list for
// each int.
func (c *Check) At(steps ...any) *Check {
	for _, s := range steps {
		switch s := s.(type) {
		case string:
			c = c.child(s)
		case int:
			c = c.element(s)
		default:
			panic(fmt.Sprintf("rule: a step of type %T", s))
		}
	}
	return c
}

// AtKey returns a Check of the value under a key of a map.
func (c *Check) AtKey(key string) *Check {
	return &Check{Context: c.Context, Change: c.Change, all: c.all, parent: c, name: key, index: -1, key: true}
}

func (c *Check) child(name string) *Check {
	return &Check{Context: c.Context, Change: c.Change, all: c.all, parent: c, name: name, index: -1}
}

func (c *Check) element(i int) *Check {
	return &Check{Context: c.Context, Change: c.Change, all: c.all, parent: c, index: i}
}

// Path returns where the Check looks.
func (c *Check) Path() *field.Path {
	switch {
	case c.path != nil || c.parent == nil:
	case c.key:
		c.path = c.parent.Path().Key(c.name)
	case c.index >= 0:
		c.path = c.parent.Path().Index(c.index)
	default:
		at := c.parent.Path()
		for name := range strings.SplitSeq(c.name, ".") {
			if at == nil {
				at = field.NewPath(name)
				continue
			}
			at = at.Child(name)
		}
		c.path = at
	}
	return c.path
}

// IsUpdate reports whether the write changes an object.
func (c *Check) IsUpdate() bool { return c.Old != nil }

// Add adds what others have found. The paths are already whole.
func (c *Check) Add(errs ...*field.Error) { c.all.errors = append(c.all.errors, errs...) }

// Invalid says that a value is not valid.
func (c *Check) Invalid(value any, detail string) {
	c.Add(field.Invalid(c.Path(), Shown(value), detail))
}

// Invalids says each detail of a value.
func (c *Check) Invalids(value any, details []string) {
	for _, d := range details {
		c.Invalid(value, d)
	}
}

// Immutable says that a value may not change.
func (c *Check) Immutable(value, old any) {
	if !equality.Semantic.DeepEqual(value, old) {
		c.Invalid(value, "field is immutable")
	}
}

// Unchanged says that a value may not change, and does not show it.
func (c *Check) Unchanged(value, old any) {
	if !equality.Semantic.DeepEqual(value, old) {
		c.Invalid(nil, "field is immutable")
	}
}

// Required says that there is no value.
func (c *Check) Required(detail string) { c.Add(field.Required(c.Path(), detail)) }

// Forbidden says that there may be no value, or not this one.
func (c *Check) Forbidden(detail string) { c.Add(field.Forbidden(c.Path(), detail)) }

// Duplicate says that a value may be there once only.
func (c *Check) Duplicate(value any) { c.Add(field.Duplicate(c.Path(), Shown(value))) }

// NotSupported says that a value is none of some, which are named in their order.
func NotSupported[T ~string](c *Check, value any, valid ...T) {
	c.Add(field.NotSupported(c.Path(), Shown(value), valid))
}

// TooLong says that a value has more than max bytes.
func (c *Check) TooLong(max int) { c.Add(field.TooLong(c.Path(), "", max)) }

// TooMany says that a list has more than max elements.
func (c *Check) TooMany(n, max int) { c.Add(field.TooMany(c.Path(), n, max)) }

// Warn tells the client something of a write that is made nevertheless.
func (c *Check) Warn(format string, args ...any) {
	c.all.warnings = append(c.all.warnings, fmt.Sprintf(format, args...))
}

// AddWarnings adds what others warn of.
func (c *Check) AddWarnings(warnings ...string) { c.all.warnings = append(c.all.warnings, warnings...) }

// Errors returns all that was found wrong so far, and Warnings what the client is to be
// told of.
func (c *Check) Errors() field.ErrorList { return c.all.errors }

// Warnings returns what the client is to be told of.
func (c *Check) Warnings() []string { return c.all.warnings }

// With gives a value to the rules of what is below in the object, such as the names that a
// list may refer to, or what an old object had already. It replaces one of the same type.
func With[T any](c *Check, value *T) {
	for i, v := range c.all.values {
		if _, ok := v.(*T); ok {
			c.all.values[i] = value
			return
		}
	}
	c.all.values = append(c.all.values, value)
}

// Given returns what With or Giving gave, or a zero value.
func Given[T any](c *Check) *T {
	for _, v := range c.all.values {
		if v, ok := v.(*T); ok {
			return v
		}
	}
	return new(T)
}
