package structural

import (
	"slices"
	"strconv"

	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// A step is one part of the path to a value: the name of a field, or an index
// when the name is empty and indexed is set.
type step struct {
	name    string
	index   int
	indexed bool
}

// A pruner walks over one object. Its path is the present position, formatted only for removed fields.
type pruner struct {
	path    [16]step // an array, because a slice would be on the heap
	deeper  []step   // the elements beyond it
	depth   int
	removed []string
}

func (p *pruner) push(s step) {
	if p.depth < len(p.path) {
		p.path[p.depth] = s
	} else {
		p.deeper = append(p.deeper, s)
	}
	p.depth++
}

func (p *pruner) pop() {
	p.depth--
	if p.depth >= len(p.path) {
		p.deeper = p.deeper[:len(p.deeper)-1]
	}
}

// pruneRoot prunes a whole object and appends the sorted paths of removed fields to removed. The
// apiVersion, kind and metadata always stay. A nil root knows no other field.
func (n *node) pruneRoot(obj map[string]any, removed []string) []string {
	p := pruner{removed: removed}
	had := len(removed)
	root := node{embedded: true}
	if n != nil && n.embedded {
		p.value(obj, n)
	} else {
		if n != nil {
			root = *n
			root.embedded = true
		}
		p.value(obj, &root)
	}
	if len(p.removed) > had+1 {
		slices.Sort(p.removed[had:])
	}
	return p.removed
}

// prune prunes an object by n alone and returns the paths of removed fields.
func (n *node) prune(obj map[string]any) []string {
	p := pruner{}
	p.value(obj, n)
	if len(p.removed) > 1 {
		slices.Sort(p.removed)
	}
	return p.removed
}

// value prunes v by n; a nil n knows no field at all.
func (p *pruner) value(v any, n *node) {
	if n != nil && n.preserve {
		p.preserved(v, n)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		p.object(v, n)
	case []any:
		var items *node
		if n != nil {
			items = n.items
		}
		for i, e := range v {
			if scalar(e) {
				continue
			}
			p.push(step{index: i, indexed: true})
			p.value(e, items)
			p.pop()
		}
	}
}

func (p *pruner) object(obj map[string]any, n *node) {
	if n == nil {
		for k := range obj {
			p.remove(obj, k)
		}
		return
	}
	for k, v := range obj {
		if n.embedded && jsonschema.IsCommon(k) {
			continue
		}
		c := n.properties[k]
		if c == nil {
			if !n.open {
				p.remove(obj, k)
				continue
			}
			c = n.additional
		}
		if scalar(v) {
			continue
		}
		p.push(step{name: k})
		p.value(v, c)
		p.pop()
	}
}

// preserved walks over a value with preserved unknown fields. Pruning resumes below the specified
// fields.
func (p *pruner) preserved(v any, n *node) {
	if n == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if n.properties == nil && !n.open {
			return
		}
		for k, v := range v {
			if n.embedded && jsonschema.IsCommon(k) || scalar(v) {
				continue
			}
			c := n.properties[k]
			if c == nil {
				if !n.open {
					continue
				}
				c = n.additional
			}
			p.push(step{name: k})
			p.value(v, c)
			p.pop()
		}
	case []any:
		if n.items == nil {
			return
		}
		for i, e := range v {
			p.push(step{index: i, indexed: true})
			p.preserved(e, n.items)
			p.pop()
		}
	}
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func (p *pruner) remove(obj map[string]any, name string) {
	delete(obj, name)
	p.push(step{name: name})
	p.removed = append(p.removed, p.where())
	p.pop()
}

// where spells the path as error messages show it: spec.list[0].field.
func (p *pruner) where() string {
	var b []byte
	for i := range p.depth {
		var s step
		if i < len(p.path) {
			s = p.path[i]
		} else {
			s = p.deeper[i-len(p.path)]
		}
		switch {
		case s.indexed:
			b = append(b, '[')
			b = strconv.AppendInt(b, int64(s.index), 10)
			b = append(b, ']')
			continue
		case len(b) > 0:
			b = append(b, '.')
		}
		b = append(b, s.name...)
	}
	return string(b)
}
