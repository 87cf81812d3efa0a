package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
)

// checkDefaults checks that the defaults below n are what the schema would make
// of them: pruned, and with metadata that is metadata. n is the root, freshly
// built.
func checkDefaults(n *node, at *field.Path) field.ErrorList {
	c := &defaultCheck{}
	root := *n
	root.embedded, root.embeds = true, true
	c.below(&root, scope{root: &root}, at)
	return c.errs
}

type defaultCheck struct{ errs field.ErrorList }

// A scope is the object that a default is part of: the nearest embedded one or
// the whole.
type scope struct {
	root       *node
	path       []step // from root to here
	insideMeta bool
}

func (s scope) child(n *node, name string) scope {
	s.path = append(slices.Clip(s.path), step{name: name})
	if n.embedded && always(name) {
		s.insideMeta = true
	}
	return s
}

func (c *defaultCheck) below(n *node, in scope, at *field.Path) {
	if n.embedded && n != in.root {
		whole := *n
		in = scope{root: &whole}
	}
	if n.def != nil {
		c.value(n, in, at.Child("default"))
	}
	// Below additionalProperties a default is never used by itself.
	if n.items != nil {
		sub := in
		sub.path = append(slices.Clip(sub.path), step{indexed: true})
		c.below(n.items, sub, at.Child("items"))
	}
	for _, name := range propertyNames(n.properties) {
		c.below(n.properties[name], in.child(n, name), at.Child("properties").Key(name))
	}
}

func (c *defaultCheck) value(n *node, in scope, at *field.Path) {
	if in.insideMeta {
		obj, ok := surround(object.Clone(n.def), in.path).(map[string]any)
		if !ok {
			return
		}
		if err := in.root.checkEmbedded(obj, nil); err != nil {
			c.errs = append(c.errs, field.Invalid(at, n.def, "must result in valid metadata: "+err.Error()))
		}
		return
	}
	whole := map[string]any{"": object.Clone(n.def)}
	if n.embedded {
		obj, _ := whole[""].(map[string]any)
		n.pruneRoot(obj, nil)
	} else {
		p := pruner{}
		p.value(whole[""], n)
	}
	if !object.Equal(whole[""], n.def) {
		c.errs = append(c.errs, field.Invalid(at, n.def, "must not have unknown fields"))
	}
	if err := n.checkEmbedded(n.def, at); err != nil {
		c.errs = append(c.errs, err.(*field.Error))
		return
	}
	// In form it is what any complaint shows.
	n.coerceEmbedded(n.def, nil)
}

// surround returns the object in which v is all there is, at path.
func surround(v any, path []step) any {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].indexed {
			v = []any{v}
		} else {
			v = map[string]any{path[i].name: v}
		}
	}
	return v
}
