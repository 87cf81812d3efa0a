package structural

import (
	"fmt"
	"reflect"
)

// A correlation relates a value to its old one: by name in objects and by key in map lists, and only
// in places of the schema. A nil correlation has no old value.
type correlation struct {
	node       *node
	value, was any

	fields map[string]*correlation
	items  map[int]*correlation
	// olds are the items of an old map list by their keys, created at the first use.
	olds  map[any]map[string]any
	keyed bool

	compared, same bool
}

// below returns the correlation of a field. The apiVersion and kind of the whole object never count as
// unchanged: a stored object is converted before it is compared. at is the path of the object.
func (c *correlation) below(at, name string) *correlation {
	if at == "" && (name == "apiVersion" || name == "kind") {
		return nil
	}
	return c.field(name)
}

func (c *correlation) field(name string) *correlation {
	if c == nil {
		return nil
	}
	if known := c.fields[name]; known != nil {
		return known
	}
	value, isObject := c.value.(map[string]any)
	was, wasObject := c.was.(map[string]any)
	if !isObject || !wasObject {
		return nil
	}
	v, ok := value[name]
	w, had := was[name]
	n := c.node.child(name)
	if !ok || !had || n == nil {
		return nil
	}
	if c.fields == nil {
		c.fields = map[string]*correlation{}
	}
	f := &correlation{node: n, value: v, was: w}
	c.fields[name] = f
	return f
}

// item returns the correlation of an item of a map list. Items of other lists have none.
func (c *correlation) item(i int) *correlation {
	if c == nil || c.node.listType != listMap {
		return nil
	}
	if known := c.items[i]; known != nil {
		return known
	}
	list, isList := c.value.([]any)
	was, wasList := c.was.([]any)
	if !isList || !wasList || i >= len(list) {
		return nil
	}
	if !c.keyed {
		c.key(was)
	}
	obj, ok := list[i].(map[string]any)
	if !ok {
		return nil
	}
	key, ok := itemKey(c.node.mapKeys, obj)
	if !ok || c.olds[key] == nil || c.node.items == nil {
		return nil
	}
	if c.items == nil {
		c.items = map[int]*correlation{}
	}
	f := &correlation{node: c.node.items, value: obj, was: c.olds[key]}
	c.items[i] = f
	return f
}

func (c *correlation) key(was []any) {
	c.keyed = true
	if c.node.typed != typeArray || len(c.node.mapKeys) == 0 {
		return
	}
	c.olds = make(map[any]map[string]any, len(was))
	for _, item := range was {
		obj, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if key, ok := itemKey(c.node.mapKeys, obj); ok && c.olds[key] == nil {
			c.olds[key] = obj
		}
	}
}

// itemKey returns what identifies an item of a map list, if all its keys are
// there.
func itemKey(keys []string, obj map[string]any) (key any, ok bool) {
	if len(keys) == 1 {
		v, ok := obj[keys[0]]
		return v, ok && v != nil && scalar(v)
	}
	var b []byte
	for _, k := range keys {
		switch v := obj[k].(type) {
		case bool:
			b = fmt.Appendf(b, "\x00%t", v)
		case float64:
			b = fmt.Appendf(b, "\x00%f", v)
		case int64:
			b = fmt.Appendf(b, "\x00%d", v)
		case string:
			b = fmt.Appendf(b, "\x00%q", v)
		default:
			return nil, false
		}
	}
	return string(b), true
}

// unchanged reports whether a value equals its old one. The order of a map list does not matter, and a
// place outside the schema never counts as unchanged.
func (c *correlation) unchanged() bool {
	if c == nil {
		return false
	}
	if !c.compared {
		c.same = c.compare()
		c.compared = true
	}
	return c.same
}

func (c *correlation) compare() bool {
	switch value := c.value.(type) {
	case []any:
		was, ok := c.was.([]any)
		if !ok || len(was) != len(value) {
			return false
		}
		for i := range value {
			item := c.item(i)
			if item == nil {
				// The items of other lists are compared as a whole.
				return !c.keyed && reflect.DeepEqual(was, value)
			}
			if !item.unchanged() {
				return false
			}
		}
		return true
	case map[string]any:
		was, ok := c.was.(map[string]any)
		if !ok || len(was) != len(value) {
			return false
		}
		for k := range value {
			if !c.field(k).unchanged() {
				return false
			}
		}
		return true
	default:
		return scalar(c.was) && c.value == c.was
	}
}
