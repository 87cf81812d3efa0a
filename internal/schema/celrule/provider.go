package celrule

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// celType returns the type of a value of n. Types of objects have names that contain the path from the
// nearest named type.
func (n *node) celType(name string) *types.Type {
	n = n.seen()
	switch n.kind {
	case objectKind:
		if n.additional != nil {
			return types.NewMapType(types.StringType, n.additional.celType(name+entryStep))
		}
		return types.NewObjectType(name)
	case listKind:
		return types.NewListType(n.items.celType(name + itemStep))
	case stringKind:
		return types.StringType
	case bytesKind:
		return types.BytesType
	case durationKind:
		return types.DurationType
	case dateKind, dateTimeKind:
		return types.TimestampType
	case boolKind:
		return types.BoolType
	case numberKind:
		return types.DoubleType
	case integerKind:
		return types.IntType
	default:
		return types.DynType
	}
}

// Path elements for unnamed types, in the names of types.
const (
	itemStep  = ".@idx"
	entryStep = ".@elem"
)

// A provider knows the types of objects below a node, without listing them.
type provider struct {
	types.Provider
	name string // of the type of root, if it is an object
	root *node
}

// newProvider adds the types below a node to those of base.
func newProvider(base types.Provider, name string, root *node) (*provider, error) {
	// Without types of its own it knows the names of scalars.
	scalars, err := apiservercel.NewDeclTypeProvider().WithTypeProvider(base)
	if err != nil {
		return nil, err
	}
	return &provider{scalars, name, root}, nil
}

// find returns the object that has a name as its type.
func (p *provider) find(name string) *node {
	rest, ok := strings.CutPrefix(name, p.name)
	if !ok || rest != "" && rest[0] != '.' {
		return nil
	}
	n := p.root
	for rest != "" {
		step := rest[1:]
		if i := strings.IndexByte(step, '.'); i >= 0 {
			step = step[:i]
		}
		rest = rest[1+len(step):]
		switch "." + step {
		case itemStep:
			n = n.items
		case entryStep:
			n = n.additional
		default:
			n = n.declared(step)
		}
		if n == nil {
			return nil
		}
		n = n.seen()
	}
	if n.kind != objectKind || n.additional != nil || !n.typed {
		return nil
	}
	return n
}

// FindStructType returns the type of a name.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if p.find(name) != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldType returns the type of a field of an object.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	n := p.find(name)
	if n == nil {
		return p.Provider.FindStructFieldType(name, field)
	}
	c := n.declared(field)
	if c == nil {
		// A keyword is valid as a field name where the grammar allows nothing else.
		reserved := "__" + field + "__"
		if unescaped, ok := apiservercel.Unescape(reserved); ok && unescaped == field {
			c, field = n.declared(reserved), reserved
		}
	}
	if c == nil {
		return nil, false
	}
	return &types.FieldType{Type: c.celType(name + "." + field)}, true
}

var _ types.Provider = (*provider)(nil)

// variables declares the variables of expressions of n.
func (n *node) variables(name string, optionalOld bool) []cel.EnvOption {
	self := n.celType(name)
	old := self
	if optionalOld {
		old = types.NewOptionalType(self)
	}
	return []cel.EnvOption{cel.Variable(selfName, self), cel.Variable(oldSelfName, old)}
}
