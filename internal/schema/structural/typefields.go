package structural

import "github.com/anykind/anykind/internal/schema/gotype"

// TypeFields are the fields that a Go type knows.
type TypeFields struct{ root *node }

// OfType returns the fields of a Go type.
func OfType(t *gotype.Type) TypeFields { return TypeFields{nodes{}.of(t)} }

// Prune removes unknown fields from obj and returns their paths, in order.
func (f TypeFields) Prune(obj map[string]any) []string { return f.root.prune(obj) }

// nodes builds the node of each Go type once.
type nodes map[*gotype.Type]*node

func (ns nodes) of(t *gotype.Type) *node {
	if n := ns[t]; n != nil {
		return n
	}
	n := &node{nullable: true}
	ns[t] = n
	switch in := t.Elements(); {
	case in.Opaque:
		n.preserve = true
	case in.Items != nil:
		n.items = ns.of(in.Items)
	case in.Values != nil:
		n.open, n.additional = true, ns.of(in.Values)
	case in.Fields != nil:
		n.properties = make(map[string]*node, len(in.Fields))
		for name, f := range in.Fields {
			n.properties[name] = ns.of(f)
		}
	}
	return n
}
