package celrule

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Lists of x-kubernetes-list-type set and map are equal in any order, and concatenation keeps their
// elements unique.

// setList presents a list of type set.
type setList struct{ list }

// Equal compares the elements without their order.
func (s *setList) Equal(other ref.Val) ref.Val { return equalSets(s, other) }

// Add appends the elements that are not there.
func (s *setList) Add(other ref.Val) ref.Val {
	them, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return union(s.values(), them)
}

// set is a list of type set created by an expression.
type set struct{ traits.Lister }

// Equal compares the elements without their order.
func (s *set) Equal(other ref.Val) ref.Val { return equalSets(s.Lister, other) }

// Add appends the elements that are not there.
func (s *set) Add(other ref.Val) ref.Val {
	them, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return union(valuesOf(s.Lister), them)
}

func union(all []ref.Val, more traits.Lister) ref.Val {
	have := make(map[any]struct{}, len(all))
	for _, v := range all {
		k, err := elementKey(v)
		if err != nil {
			return err
		}
		have[k] = struct{}{}
	}
	for it := more.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		k, err := elementKey(v)
		if err != nil {
			return err
		}
		if _, ok := have[k]; !ok {
			have[k] = struct{}{}
			all = append(all, v)
		}
	}
	return &set{types.NewRefValList(types.DefaultTypeAdapter, all)}
}

func equalSets(mine traits.Lister, other ref.Val) ref.Val {
	theirs, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if mine.Size() != theirs.Size() {
		return types.False
	}
	have := map[any]struct{}{}
	for it := mine.Iterator(); it.HasNext() == types.True; {
		k, err := elementKey(it.Next())
		if err != nil {
			return err
		}
		have[k] = struct{}{}
	}
	seen := make(map[any]struct{}, len(have))
	for it := theirs.Iterator(); it.HasNext() == types.True; {
		k, err := elementKey(it.Next())
		if err != nil {
			return err
		}
		if _, ok := have[k]; !ok {
			return types.False
		}
		seen[k] = struct{}{}
	}
	return types.Bool(len(seen) == len(have))
}

// elementKey is the same for equal elements of a set.
func elementKey(v ref.Val) (key any, err ref.Val) {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return nil, types.NewErr("listSet operations are only supported on lists of scalar values")
	}
	return hashable(v.Value()), nil
}

// hashable returns v, or a unique string if v cannot be a map key.
func hashable(v any) any {
	if v != nil && !reflect.TypeOf(v).Comparable() {
		return fmt.Sprintf("%#v", v)
	}
	return v
}

// mapList presents a list of type map.
type mapList struct {
	list
	keys []string // escaped
}

// rawKey is the same for elements with the same keys. It looks for them by their
// escaped names, as Kubernetes does.
func (m *mapList) rawKey(element any) any {
	fields, ok := element.(map[string]any)
	if !ok {
		return types.NewErr("unexpected data format for element of array with x-kubernetes-list-type=map: %T", element)
	}
	return joinKeys(m.keys, func(name string) any { return fields[name] })
}

// joinKeys joins several keys into one.
func joinKeys(names []string, get func(string) any) any {
	switch len(names) {
	case 1:
		return get(names[0])
	case 2:
		return [2]any{get(names[0]), get(names[1])}
	case 3:
		return [3]any{get(names[0]), get(names[1]), get(names[2])}
	}
	all := make([]any, len(names))
	for i, name := range names {
		all[i] = get(name)
	}
	return fmt.Sprintf("%#v", all)
}

// Equal compares the elements with the same keys, in any order.
func (m *mapList) Equal(other ref.Val) ref.Val {
	them, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if m.Size() != them.Size() {
		return types.False
	}
	mine := make(map[any]int, len(m.elements))
	for i, e := range m.elements {
		mine[m.rawKey(e)] = i
	}
	seen := make(map[any]struct{}, len(mine))
	for it := them.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		k := m.rawKey(v.Value())
		i, ok := mine[k]
		if !ok {
			return types.False
		}
		if eq := m.at(i).Equal(v); eq != types.True {
			return eq
		}
		seen[k] = struct{}{}
	}
	return types.Bool(len(seen) == len(mine))
}

// Add replaces the elements with the same keys and appends the others.
func (m *mapList) Add(other ref.Val) ref.Val {
	them, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return merge(m.values(), them, m.keys)
}

// keyed is a list of type map created by an expression.
type keyed struct {
	traits.Lister
	keys []string
}

func merge(all []ref.Val, more traits.Lister, keys []string) ref.Val {
	at := make(map[any]int, len(all))
	for i, v := range all {
		at[valueKey(v, keys)] = i
	}
	for it := more.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		if i, ok := at[valueKey(v, keys)]; ok {
			all[i] = v
		} else {
			all = append(all, v)
		}
	}
	return &keyed{types.NewRefValList(types.DefaultTypeAdapter, all), keys}
}

// valueKey is rawKey for a CEL value.
func valueKey(v ref.Val, keys []string) any {
	return joinKeys(keys, func(name string) any {
		m, ok := v.(traits.Mapper)
		if !ok {
			return nil
		}
		field, found := m.Find(types.String(name))
		if !found || field == nil || types.IsUnknownOrError(field) {
			return nil
		}
		return hashable(field.Value())
	})
}

// Equal compares the elements with the same keys, in any order.
func (k *keyed) Equal(other ref.Val) ref.Val {
	them, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if k.Size() != them.Size() {
		return types.False
	}
	mine := map[any]ref.Val{}
	for it := k.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		mine[valueKey(v, k.keys)] = v
	}
	seen := make(map[any]struct{}, len(mine))
	for it := them.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		key := valueKey(v, k.keys)
		m, ok := mine[key]
		if !ok {
			return types.False
		}
		if eq := m.Equal(v); eq != types.True {
			return eq
		}
		seen[key] = struct{}{}
	}
	return types.Bool(len(seen) == len(mine))
}

// Add replaces the elements with the same keys and appends the others.
func (k *keyed) Add(other ref.Val) ref.Val {
	them, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return merge(valuesOf(k.Lister), them, k.keys)
}

func valuesOf(l traits.Lister) []ref.Val {
	n, _ := l.Size().(types.Int)
	all := make([]ref.Val, n)
	for i := range all {
		all[i] = l.Get(types.Int(i))
	}
	return all
}
