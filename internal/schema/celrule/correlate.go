package celrule

import "strconv"

// An update may keep an unchanged value that breaks a rule. A value is compared with the one it
// replaces: fields by name, elements of a list of type map by their keys, other lists as a whole.

// A pair is a value and the one it replaces.
type pair struct {
	node     *node
	now, was any
}

func (p pair) none() bool { return p.node == nil }

// A correlation relates the place under validation to its old value.
type correlation struct {
	current pair
	// parent is the nearest place around it that has a pair.
	parent pair
}

// unchanged reports whether a failure at the place is forgiven.
func (c correlation) unchanged() bool {
	if !c.current.none() {
		return c.current.equal()
	}
	return !c.parent.none() && c.parent.equal()
}

// field is the correlation of a field.
func (c correlation) field(name string) correlation {
	if c.current.none() {
		return c
	}
	if c.parent.none() && (name == "apiVersion" || name == "kind") {
		// Old and new were brought to the same ones.
		return correlation{}
	}
	return correlation{c.current.field(name), c.current}
}

func (c correlation) element(i int, was any) correlation {
	if c.current.none() {
		return c
	}
	return correlation{c.current.element(i, was), c.current}
}

func (p pair) field(name string) pair {
	now, ok1 := p.now.(map[string]any)
	was, ok2 := p.was.(map[string]any)
	if !ok1 || !ok2 {
		return pair{}
	}
	a, ok1 := now[name]
	b, ok2 := was[name]
	if !ok1 || !ok2 {
		return pair{}
	}
	child := p.node.properties[name]
	if child == nil {
		child = p.node.additional
	}
	if child == nil {
		return pair{}
	}
	return pair{child, a, b}
}

// element is the pair of an element and of the one with its keys.
func (p pair) element(i int, was any) pair {
	now, ok := p.now.([]any)
	if !ok || i >= len(now) || was == nil || p.node.items == nil {
		return pair{}
	}
	return pair{p.node.items, now[i], was}
}

// equal compares the values of a pair.
func (p pair) equal() bool {
	switch now := p.now.(type) {
	case []any:
		was, ok := p.was.([]any)
		if !ok || len(now) != len(was) {
			return false
		}
		if p.node.listType != "map" || p.node.items == nil {
			return equal(now, was)
		}
		old := p.node.index(was)
		for i := range now {
			if e := p.element(i, old.get(now[i])); e.none() || !e.equal() {
				return false
			}
		}
		return true
	case map[string]any:
		was, ok := p.was.(map[string]any)
		if !ok || len(now) != len(was) {
			return false
		}
		for name := range now {
			if f := p.field(name); f.none() || !f.equal() {
				return false
			}
		}
		return true
	default:
		return equal(p.now, p.was)
	}
}

// An index finds elements of a list of type map by their keys, the first one if a key repeats.
type index struct {
	keys  []string
	items []any
	// byKey is created when there are enough elements.
	byKey map[any]any
}

// fewItems are found without an index.
const fewItems = 8

// index returns the index of a list at n, an empty one if it is not of type map.
func (n *node) index(items []any) *index {
	if n.kind != listKind || n.listType != "map" || len(n.mapKeys) == 0 || len(items) == 0 {
		return nil
	}
	x := &index{keys: n.mapKeys, items: items}
	if len(items) <= fewItems {
		return x
	}
	x.byKey = make(map[any]any, len(items))
	for _, item := range items {
		if k, ok := x.key(item); ok {
			if _, exists := x.byKey[k]; !exists {
				x.byKey[k] = item
			}
		}
	}
	return x
}

// get returns the element with the keys of item, or nil.
func (x *index) get(item any) any {
	if x == nil {
		return nil
	}
	k, ok := x.key(item)
	if !ok {
		return nil
	}
	if x.byKey != nil {
		return x.byKey[k]
	}
	for _, candidate := range x.items {
		if other, ok := x.key(candidate); ok && other == k {
			return candidate
		}
	}
	return nil
}

// key returns the key of an element.
func (x *index) key(item any) (any, bool) {
	fields, ok := item.(map[string]any)
	if !ok {
		return nil, false
	}
	if len(x.keys) == 1 {
		switch v := fields[x.keys[0]].(type) {
		case bool, float64, int64, string:
			return v, true
		}
		return nil, false
	}
	var few [64]byte
	joined := few[:0]
	for _, name := range x.keys {
		joined = append(joined, 0)
		switch v := fields[name].(type) {
		case bool:
			joined = strconv.AppendBool(joined, v)
		case float64:
			joined = strconv.AppendFloat(joined, v, 'f', 6, 64)
		case int64:
			joined = strconv.AppendInt(joined, v, 10)
		case string:
			joined = strconv.AppendQuote(joined, v)
		default:
			return nil, false
		}
	}
	return string(joined), true
}
