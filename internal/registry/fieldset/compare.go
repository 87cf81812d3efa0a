package fieldset

import (
	"strings"

	"github.com/anykind/anykind/internal/object"
)

// Changes are the fields in which two objects differ. No field is in two of the Sets.
type Changes struct{ Removed, Modified, Added Set }

// Compare returns the changes from old to now. Both conform to the type.
func (t *Type) Compare(old, now object.Tree) Changes {
	c, _ := t.compare(old, now, true, true)
	for _, s := range []*Set{&c.Removed, &c.Modified, &c.Added} {
		if *s == nil {
			*s = Set{}
		}
		delete(*s, self) // the object as a whole has no manager
	}
	return c
}

// compare returns the changes at a place and below it; old or now may be missing. A nil Set contains
// neither the place nor anything below it. leaf reports that the place was compared as one value.
func (t *Type) compare(old, now any, hasOld, hasNow bool) (c Changes, leaf bool) {
	was, is := t.parts, t.parts
	if hasOld {
		was = t.of(old)
	}
	if hasNow {
		is = t.of(now)
	}
	if !hasNow {
		is = was
	}
	if hasOld && was != is {
		// The value has changed its form. It is compared as both.
		c, _ = t.compareAs(was, old, now, hasOld, hasNow)
	}
	also, leaf := t.compareAs(is, old, now, hasOld, hasNow)
	c = c.and(also)
	switch {
	case leaf:
	case !hasOld:
		c.Added = mark(c.Added)
	case !hasNow:
		c.Removed = mark(c.Removed)
	}
	return c, leaf
}

func (c Changes) and(more Changes) Changes {
	both := func(a, b Set) Set {
		if a == nil || b == nil {
			if a == nil {
				return b
			}
			return a
		}
		in := member(a) || member(b)
		Unite(a, b)
		delete(a, self)
		if in && len(a) > 0 {
			a[self] = Set{}
		}
		return a
	}
	return Changes{both(c.Removed, more.Removed), both(c.Modified, more.Modified), both(c.Added, more.Added)}
}

func (t *Type) compareAs(p parts, old, now any, hasOld, hasNow bool) (c Changes, leaf bool) {
	switch p.first() {
	case mapPart:
		was, _ := old.(object.Tree)
		is, _ := now.(object.Tree)
		if !t.fields.atomic && (len(was) > 0 || len(is) > 0) {
			t.fields.compare(&c, was, is)
			return c, false
		}
	case listPart:
		was, _ := old.([]any)
		is, _ := now.([]any)
		if !t.list.atomic && (len(was) > 0 || len(is) > 0) {
			t.list.compare(&c, was, is)
			return c, false
		}
	}
	switch {
	case !hasOld:
		c.Added = Set{}
	case !hasNow:
		c.Removed = Set{}
	case !object.Equal(old, now):
		c.Modified = Set{}
	}
	return c, true
}

func (m *mapping) compare(c *Changes, was, is object.Tree) {
	for name, old := range was {
		now, ok := is[name]
		if ok && equal(old, now) {
			continue
		}
		if t, key, _ := m.child(name); t != nil {
			below, _ := t.compare(old, now, true, ok)
			c.put(name, key, below, len(was))
		}
	}
	for name, now := range is {
		if _, ok := was[name]; ok {
			continue
		}
		if t, key, _ := m.child(name); t != nil {
			below, _ := t.compare(nil, now, false, true)
			c.put(name, key, below, len(is))
		}
	}
}

// equal reports whether two values are certainly equal. Few values change.
func equal(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case []any:
		b, ok := b.([]any)
		return ok && object.Equal(a, b)
	default:
		return false
	}
}

// put adds the changes below a field.
func (c *Changes) put(name, key string, below Changes, size int) {
	put(&c.Removed, name, key, below.Removed, size)
	put(&c.Modified, name, key, below.Modified, size)
	put(&c.Added, name, key, below.Added, size)
}

func put(s *Set, name, key string, below Set, size int) {
	if below == nil {
		return
	}
	if *s == nil {
		*s = make(Set, min(size, few))
	}
	(*s)[keyOf(name, key)] = below
}

// compare compares lists by their elements' keys. Elements with equal keys are compared as one value.
func (l *list) compare(c *Changes, was, is []any) {
	old, _ := l.index(was)
	now, _ := l.index(is)
	for i, key := range old.keys {
		if old.repeats && old.find(key) != i {
			continue
		}
		l.compareElements(c, key, &old, &now, was, is)
	}
	for i, key := range now.keys {
		if now.repeats && now.find(key) != i || old.find(key) >= 0 {
			continue
		}
		l.compareElements(c, key, &old, &now, was, is)
	}
}

func (l *list) compareElements(c *Changes, key string, old, now *index, was, is []any) {
	if !old.repeats && !now.repeats {
		i, k := old.find(key), now.find(key)
		c.put("", key, l.compareElement(was, is, i, k), few)
		return
	}
	from, to := old.all(key), now.all(key)
	first := func(at []int) int {
		if len(at) == 0 {
			return -1
		}
		return at[0]
	}
	var below Changes
	switch {
	case len(from) <= 1 && len(to) <= 1:
		below = l.compareElement(was, is, first(from), first(to))
	case len(from) >= 2 && len(to) >= 2:
		if !equalElements(was, is, from, to) {
			below.Modified = Set{}
		}
	case len(from) >= 2:
		if len(to) > 0 {
			below = l.compareElement(was, is, -1, to[0])
		}
		below.Removed = mark(below.Removed)
	default:
		if len(from) > 0 {
			below = l.compareElement(was, is, from[0], -1)
		}
		below.Added = mark(below.Added)
	}
	c.put("", key, below, few)
}

func (l *list) compareElement(was, is []any, i, k int) Changes {
	var old, now any
	if i >= 0 {
		old = was[i]
	}
	if k >= 0 {
		now = is[k]
	}
	c, _ := l.of.compare(old, now, i >= 0, k >= 0)
	return c
}

func equalElements(was, is []any, from, to []int) bool {
	if len(from) != len(to) {
		return false
	}
	for i := range from {
		if !object.Equal(was[from[i]], is[to[i]]) {
			return false
		}
	}
	return true
}

// Fields returns the fields of v, which conforms to the type.
func (t *Type) Fields(v object.Tree) Set {
	s := t.fieldsOf(v)
	if s == nil {
		s = Set{}
	}
	delete(s, self)
	return s
}

// fieldsOf returns the fields at a place and below it; nil is none.
func (t *Type) fieldsOf(v any) Set {
	switch t.of(v).first() {
	case mapPart:
		if t.fields.atomic {
			return Set{}
		}
		m, _ := v.(object.Tree)
		return t.fields.fieldsOf(m)
	case listPart:
		if t.list.atomic {
			return Set{}
		}
		l, _ := v.([]any)
		return t.list.fieldsOf(l)
	default:
		return Set{}
	}
}

func (m *mapping) fieldsOf(t object.Tree) Set {
	var s Set
	for name, v := range t {
		c, key, declared := m.child(name)
		if c == nil {
			continue
		}
		below := c.fieldsOf(v)
		if empty, ok := v.(object.Tree); v == nil || ok && len(empty) == 0 || !declared {
			below = mark(below)
		}
		put(&s, name, key, below, len(t))
	}
	return s
}

func (l *list) fieldsOf(items []any) Set {
	x, _ := l.index(items)
	var s Set
	for i, key := range x.keys {
		var below Set
		if !x.repeats || len(x.all(key)) == 1 {
			below = l.of.fieldsOf(items[i])
		}
		put(&s, "", key, mark(below), len(items))
	}
	return s
}

// Reconcile converts a Set of an earlier schema to this one: the manager of a part of a value that is
// now atomic manages the whole value. It changes s, and reports whether the type is valid.
func (t *Type) Reconcile(s Set) bool {
	part := t.parts.first()
	if part == 0 {
		return false
	}
	for key, v := range s {
		below := v.(Set)
		c := t.below(part, key)
		if key == self || c == nil {
			continue
		}
		if c.parts == 0 {
			return false
		}
		if len(below) > 0 && c.single() {
			s[key] = Set{}
		} else if !c.Reconcile(below) {
			return false
		}
	}
	return true
}

// single reports whether a value of the type is managed as a whole.
func (t *Type) single() bool {
	switch t.parts.first() {
	case mapPart:
		return t.fields.atomic && !t.fields.unknown
	case listPart:
		return t.list.atomic
	default:
		return false
	}
}

// below returns the type of a key of a Set, nil if it is unknown.
func (t *Type) below(part parts, key string) *Type {
	switch {
	case part == listPart:
		return t.list.of
	case part != mapPart || t.fields.unknown:
		return nil
	case strings.HasPrefix(key, "f:"):
		c, _, _ := t.fields.child(key[2:])
		return c
	default:
		return t.fields.rest
	}
}
