package celrule

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// object presents an object, or a map, at a node.
type object struct {
	node   *node
	fields map[string]any
	// made caches the CEL values of fields: rules often use the same ones.
	made []madeField
}

type madeField struct {
	name  string
	value ref.Val
}

var _ traits.Mapper = (*object)(nil)

// schemaOf is the node of a field, or nil where the schema does not know it.
func (o *object) schemaOf(name string) *node {
	n := o.node
	var c *node
	switch {
	case n.properties != nil || n.embedded:
		c = n.properties[name]
	default:
		c = n.additional
	}
	if c == nil {
		return nil
	}
	return c.seen()
}

// Find returns the field that an expression names.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	k, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	name := string(k)
	if o.node.properties == nil {
		v, ok := o.fields[name]
		if !ok {
			return nil, false
		}
		if c := o.schemaOf(name); c != nil {
			return c.value(v), true
		}
		return nil, false
	}
	f, ok := o.node.fields[name]
	if !ok {
		// Only expressions that are not checked get here.
		if f.name, ok = apiservercel.Unescape(name); !ok {
			return nil, false
		}
		f.node = o.node.properties[f.name]
	}
	v := o.fields[f.name]
	// A null is an optional field that is not there.
	if v == nil || f.node == nil {
		return nil, false
	}
	return o.field(f, v), true
}

func (o *object) field(f fieldOf, v any) ref.Val {
	n := f.node.seen()
	switch n.kind {
	case boolKind, integerKind, numberKind:
		return n.value(v)
	}
	for i := range o.made {
		if o.made[i].name == f.name {
			return o.made[i].value
		}
	}
	value := n.value(v)
	if types.IsError(value) {
		return value // no two errors are the same
	}
	if o.made == nil {
		o.made = make([]madeField, 0, 2)
	}
	o.made = append(o.made, madeField{f.name, value})
	return value
}

// Get returns a field, or an error.
func (o *object) Get(key ref.Val) ref.Val {
	if v, found := o.Find(key); found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains reports whether there is a field.
func (o *object) Contains(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if v != nil && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// Size counts fields, including those outside the schema.
func (o *object) Size() ref.Val { return types.Int(len(o.fields)) }

// Iterator iterates over the names of the fields.
func (o *object) Iterator() traits.Iterator {
	it := &keys{object: o, names: make([]ref.Val, len(o.fields))}
	i := 0
	for name := range o.fields {
		if o.schemaOf(name) == nil {
			continue
		}
		key := name
		if o.node.properties != nil {
			if escaped, ok := apiservercel.Escape(name); ok {
				key = escaped
			}
		}
		it.names[i] = types.String(key)
		i++
	}
	return it
}

// keys iterates over the names of fields.
type keys struct {
	*object
	names []ref.Val
	next  int
}

// HasNext reports whether there is another name.
func (k *keys) HasNext() ref.Val { return types.Bool(k.next < len(k.names)) }

// Next returns a name.
func (k *keys) Next() ref.Val {
	k.next++
	return k.names[k.next-1]
}

// Equal compares field by field. Fields outside the schema are compared as raw data. A difference
// takes precedence over an error, and among errors the first field by name, so that the result does
// not depend on the order of a map.
func (o *object) Equal(other ref.Val) ref.Val {
	them, ok := other.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if o.Size() != them.Size() {
		return types.False
	}
	var wrong ref.Val
	at := ""
	for name, v := range o.fields {
		switch eq := o.equalField(name, v, them); eq {
		case types.True:
		case types.False:
			return types.False
		default:
			if wrong == nil || name < at {
				wrong, at = eq, name
			}
		}
	}
	if wrong != nil {
		return wrong
	}
	return types.True
}

// equalField compares v, the value of a field, with that field of another object.
func (o *object) equalField(name string, v any, them traits.Mapper) ref.Val {
	if o.schemaOf(name) == nil {
		they, ok := them.(*object)
		if !ok {
			return types.MaybeNoSuchOverloadErr(them)
		}
		w, ok := they.fields[name]
		return types.Bool(!ok || equal(v, w))
	}
	key := types.String(name)
	mine, has := o.Find(key)
	theirs, have := them.Find(key)
	if has != have {
		return types.False
	}
	if !has {
		return types.True
	}
	return mine.Equal(theirs)
}

// ConvertToNative converts the object for functions that do not know this type.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.Map {
		return o.fields, nil
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%s'", o.Type(), t)
}

// ConvertToType returns the object for the map type, and an error for other types.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", o.Type(), t.TypeName())
}

// Type is that of maps.
func (o *object) Type() ref.Type { return types.MapType }

// Value is the object.
func (o *object) Value() any { return o.fields }
