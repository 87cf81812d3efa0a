package structural

import (
	"fmt"
	"slices"

	"github.com/anykind/anykind/internal/object"
)

// fill drops the nulls in v that the schema neither allows nor defaults, and sets defaults. A value
// that is itself a default (given) keeps its nulls.
func (n *node) fill(v any, given bool) {
	if n == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		n.fillObject(v, given)
	case []any:
		if n.items == nil {
			return
		}
		for i, e := range v {
			if e == nil && !n.items.nullable {
				v[i] = object.Clone(n.items.def)
				continue
			}
			n.items.fill(e, given)
		}
	}
}

func (n *node) fillObject(obj map[string]any, given bool) {
	for k, v := range obj {
		c := n.child(k)
		switch {
		case c == nil:
		case v != nil || c.nullable:
			c.fill(v, given)
		case c.def != nil:
			obj[k] = object.Clone(c.def)
		case !given:
			delete(obj, k)
		}
	}
	for _, k := range n.defaulted {
		if _, ok := obj[k]; !ok {
			obj[k] = object.Clone(n.properties[k].def)
		}
	}
}

// dropNulls is the part of fill that drops.
func (n *node) dropNulls(v any) {
	if n == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			c := n.child(k)
			if c.drops(e) {
				delete(v, k)
				continue
			}
			c.dropNulls(e)
		}
	case []any:
		for _, e := range v {
			n.items.dropNulls(e)
		}
	}
}

// drops reports whether dropNulls drops a field with the schema n.
func (n *node) drops(v any) bool { return n != nil && v == nil && !n.nullable && n.def == nil }

// hasNulls reports whether dropNulls drops something.
func (n *node) hasNulls(v any) bool {
	if n == nil {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if c := n.child(k); c.drops(e) || c.hasNulls(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, n.items.hasNulls)
	}
	return false
}

// completeDefaults brings the defaults at and below n into the form they have
// in an object: pruned by the schema of the whole, and complete with the
// defaults that apply inside them. at is the path to n.
func (n *node) completeDefaults(root *node, at []step) error {
	for name, p := range n.properties {
		if err := p.completeDefaults(root, append(at, step{name: name})); err != nil {
			return err
		}
	}
	if n.additional != nil {
		if err := n.additional.completeDefaults(root, append(at, step{name: "*"})); err != nil {
			return err
		}
	}
	if n.items != nil {
		if err := n.items.completeDefaults(root, append(at, step{indexed: true})); err != nil {
			return err
		}
	}
	if n.def != nil {
		pruned, err := pruneDefault(n.def, root, at)
		if err != nil {
			return fmt.Errorf("failed to prune default value: %w", err)
		}
		n.def = pruned
	}
	n.defaulted = n.defaultedProperties()
	n.fill(n.def, true)
	return nil
}

// pruneDefault prunes a default as in an object without other fields. The result may be empty.
func pruneDefault(def any, root *node, at []step) (any, error) {
	obj, ok := surround(def, at).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("object root default value must be of object type")
	}
	coerceMetadata(obj, nil, nil)
	if root.embeds {
		root.coerceEmbedded(obj, nil)
	}
	root.pruneRoot(obj, nil)

	var v any = obj
	for _, s := range at {
		switch w := v.(type) {
		case map[string]any:
			v = w[s.name]
		case []any:
			if len(w) == 0 {
				return nil, nil
			}
			v = w[0]
		default:
			return nil, nil
		}
	}
	return v, nil
}
