package celrule

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// list presents a list.
type list struct {
	node     *node // of the elements
	elements []any
	// made caches the CEL values of elements, nil for none.
	made []ref.Val
}

var _ traits.Lister = (*list)(nil)

func (l *list) at(i int) ref.Val {
	if l.made != nil && l.made[i] != nil {
		return l.made[i]
	}
	v := l.node.value(l.elements[i])
	if types.IsError(v) {
		return v // no two errors are the same
	}
	if l.made == nil {
		l.made = make([]ref.Val, len(l.elements))
	}
	l.made[i] = v
	return v
}

// Get returns an element, or an error.
func (l *list) Get(index ref.Val) ref.Val {
	i, ok := index.(types.Int)
	if !ok {
		return types.ValOrErr(index, "unsupported index: %v", index)
	}
	if i < 0 || int(i) >= len(l.elements) {
		return types.NewErr("index out of bounds: %v", index)
	}
	return l.at(int(i))
}

// Size returns the number of elements.
func (l *list) Size() ref.Val { return types.Int(len(l.elements)) }

// Iterator iterates over the elements.
func (l *list) Iterator() traits.Iterator { return &elements{list: l} }

// elements iterates over a list.
type elements struct {
	*list
	next int
}

// HasNext reports whether there is another element.
func (e *elements) HasNext() ref.Val { return types.Bool(e.next < len(e.list.elements)) }

// Next returns an element.
func (e *elements) Next() ref.Val {
	e.next++
	return e.at(e.next - 1)
}

// Contains reports whether an element equals v.
func (l *list) Contains(v ref.Val) ref.Val {
	if types.IsUnknownOrError(v) {
		return v
	}
	var err ref.Val
	for i := range l.elements {
		switch eq := l.at(i).Equal(v).(type) {
		case types.Bool:
			if eq {
				return types.True
			}
		default:
			if err == nil {
				err = types.MaybeNoSuchOverloadErr(eq)
			}
		}
	}
	if err != nil {
		return err
	}
	return types.False
}

// Equal compares element by element.
func (l *list) Equal(other ref.Val) ref.Val {
	them, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.Size() != them.Size() {
		return types.False
	}
	for i := range l.elements {
		if eq := l.at(i).Equal(them.Get(types.Int(i))); eq != types.True {
			return eq
		}
	}
	return types.True
}

// Add appends another list.
func (l *list) Add(other ref.Val) ref.Val {
	them, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	all := l.values()
	for it := them.Iterator(); it.HasNext() == types.True; {
		all = append(all, it.Next())
	}
	return types.NewRefValList(types.DefaultTypeAdapter, all)
}

// values returns the elements in a slice of its own.
func (l *list) values() []ref.Val {
	all := make([]ref.Val, len(l.elements))
	for i := range all {
		all[i] = l.at(i)
	}
	return all
}

// ConvertToNative converts the list for functions that do not know this type.
func (l *list) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("type conversion error from '%s' to '%s'", l.Type(), t)
	}
	if l.node.typeName != "string" {
		return l.elements, nil
	}
	var out []string
	for _, e := range l.elements {
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("expected all elements to be of type string, but got %T", e)
		}
		out = append(out, s)
	}
	return out, nil
}

// ConvertToType returns the list for the list type, and an error for other types.
func (l *list) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", l.Type(), t.TypeName())
}

// Type is that of lists.
func (l *list) Type() ref.Type { return types.ListType }

// Value is the list.
func (l *list) Value() any { return l.elements }
