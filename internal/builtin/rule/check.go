package rule

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// Tagged reports whether the beta tags of API types validate. Otherwise, the handwritten validation of Kubernetes does, with
// other errors.
func Tagged(gates *gate.Set) bool { return gates.On(gate.DeclarativeValidationBeta) }

// Untagged returns the detail of a handwritten error. Errors of tags have none.
func Untagged(gates *gate.Set, detail string) string {
	if Tagged(gates) {
		return ""
	}
	return detail
}

// A Check is at one place in an object and collects errors. At returns Checks of other places of
// the same object.
type Check struct {
	context.Context
	// Change is the write. Rules use typed values; other properties of the write are here.
	*resource.Change

	all    *findings
	parent *Check
	name   string // of the parent's field, or the key in its map
	index  int    // in the parent's list, or -1
	key    bool   // name is a key of a map
	path   *field.Path
}

// findings are the results of a Check and of those made from it.
type findings struct {
	set      *Set
	errors   field.ErrorList
	warnings []string
	values   []any // see With
}

// NewCheck returns a Check of a whole object with the rules of a Set.
func NewCheck(ctx context.Context, c *resource.Change, set *Set) *Check {
	all := &findings{set: set}
	if set != nil {
		all.values = slices.Clone(set.given)
	}
	return &Check{Context: ctx, Change: c, all: all, index: -1}
}

// Apart returns a Check of the whole object with the same rules and separate results.
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

// AtKey returns a Check of the value of a key in a map.
func (c *Check) AtKey(key string) *Check {
	return &Check{Context: c.Context, Change: c.Change, all: c.all, parent: c, name: key, index: -1, key: true}
}

func (c *Check) child(name string) *Check {
	return &Check{Context: c.Context, Change: c.Change, all: c.all, parent: c, name: name, index: -1}
}

func (c *Check) element(i int) *Check {
	return &Check{Context: c.Context, Change: c.Change, all: c.all, parent: c, index: i}
}

// Conditions adds the errors of conditions.
func (c *Check) Conditions(conditions []metav1.Condition) {
	c.Add(metavalidation.ValidateConditions(conditions, c.Path())...)
}

// Path returns the path of the Check.
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

// IsUpdate reports whether the write is an update.
func (c *Check) IsUpdate() bool { return c.Old != nil }

// Add adds errors with complete paths.
func (c *Check) Add(errs ...*field.Error) { c.all.errors = append(c.all.errors, errs...) }

// Invalid adds an error for an invalid value.
func (c *Check) Invalid(value any, detail string) {
	c.Add(field.Invalid(c.Path(), Shown(value), detail))
}

// Invalids adds an error for each detail.
func (c *Check) Invalids(value any, details []string) {
	for _, d := range details {
		c.Invalid(value, d)
	}
}

// Immutable adds an error if an immutable value has changed.
func (c *Check) Immutable(value, old any) {
	if !equality.Semantic.DeepEqual(value, old) {
		c.Invalid(value, "field is immutable")
	}
}

// Unchanged is Immutable for a value that is immutable by a tag: without the value in the error.
func (c *Check) Unchanged(value, old any) {
	if !equality.Semantic.DeepEqual(value, old) {
		c.Invalid(nil, "field is immutable")
	}
}

// UnchangedBeta is Unchanged for a beta tag.
func (c *Check) UnchangedBeta(value, old any) {
	if Tagged(c.Gates) {
		c.Unchanged(value, old)
	} else {
		c.Immutable(value, old)
	}
}

// Required adds an error for a missing value.
func (c *Check) Required(detail string) { c.Add(field.Required(c.Path(), detail)) }

// Forbidden adds an error for a value that is not allowed.
func (c *Check) Forbidden(detail string) { c.Add(field.Forbidden(c.Path(), detail)) }

// Duplicate adds an error for a duplicate value.
func (c *Check) Duplicate(value any) { c.Add(field.Duplicate(c.Path(), Shown(value))) }

// NotSupported adds an error for an unsupported value. It lists the valid ones in this order.
func NotSupported[T ~string](c *Check, value any, valid ...T) {
	c.Add(field.NotSupported(c.Path(), Shown(value), valid))
}

// TooLong adds an error for a value longer than max bytes.
func (c *Check) TooLong(max int) { c.Add(field.TooLong(c.Path(), "", max)) }

// TooMany adds an error for a list longer than max elements.
func (c *Check) TooMany(n, max int) { c.Add(field.TooMany(c.Path(), n, max)) }

// Warn adds a warning.
func (c *Check) Warn(format string, args ...any) {
	c.all.warnings = append(c.all.warnings, fmt.Sprintf(format, args...))
}

// AddWarnings adds warnings.
func (c *Check) AddWarnings(warnings ...string) { c.all.warnings = append(c.all.warnings, warnings...) }

// Errors returns the errors so far.
func (c *Check) Errors() field.ErrorList { return c.all.errors }

// Warnings returns the warnings so far.
func (c *Check) Warnings() []string { return c.all.warnings }

// With provides a value to the rules below, such as the names that a list may refer to, or
// exceptions for an old object. It replaces a value of the same type.
func With[T any](c *Check, value *T) {
	for i, v := range c.all.values {
		if _, ok := v.(*T); ok {
			c.all.values[i] = value
			return
		}
	}
	c.all.values = append(c.all.values, value)
}

// Given returns the value of With or Giving, or the zero value.
func Given[T any](c *Check) *T {
	for _, v := range c.all.values {
		if v, ok := v.(*T); ok {
			return v
		}
	}
	return new(T)
}
