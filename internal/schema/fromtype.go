package schema

import (
	"reflect"

	"github.com/anykind/anykind/internal/resource"
)

// TypeOptions say of a Go type what reflection cannot see.
type TypeOptions struct {
	Kind Kind
	// List is the Go type of a list of the kind, or nil.
	List reflect.Type
	// Marks of the type and of those it refers to, besides those of metadata.
	Marks Marks
}

// FromType returns the schema of a kind whose objects have a Go type.
//
// Such a schema neither fills in defaults nor validates: both are code, in the
// hooks of the kind. Its Complete does what decoding into the type does.
func FromType(t reflect.Type, o TypeOptions) *Schema {
	t = deref(t)
	return &Schema{
		compile: func() (*program, error) {
			typ := typeOf(t)
			return &program{root: nodes{}.of(typ), kind: o.Kind, typ: typ}, nil
		},
		model: func() (resource.Model, error) { return typeModel(t, o), nil },
	}
}

// nodes makes the node of each Go type once.
type nodes map[*goType]*node

func (ns nodes) of(t *goType) *node {
	if n := ns[t]; n != nil {
		return n
	}
	n := &node{nullable: true}
	ns[t] = n
	switch t.form {
	case formAny, formOpaque, formSchema, formSchemaOrBool:
		n.preserve = true
	case formList:
		n.items = ns.of(t.elem)
	case formMap:
		n.open, n.additional = true, ns.of(t.elem)
	case formStruct:
		n.properties = make(map[string]*node, len(t.fields))
		for name, f := range t.fields {
			n.properties[name] = ns.of(f.goType)
		}
	}
	return n
}
