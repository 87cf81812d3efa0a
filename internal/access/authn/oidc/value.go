package oidc

import (
	"encoding/json"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/lazy"

	"github.com/anykind/anykind/internal/object/request"
)

// claimsValue returns the variable claims of expressions. A claim is parsed at its first use.
func claimsValue(c claims) *lazy.MapValue {
	m := lazy.NewMapValue(types.NewObjectType("kubernetes.claims"))
	for name, data := range c {
		m.Append(name, func(*lazy.MapValue) ref.Val {
			var value any
			if err := json.Unmarshal(data, &value); err != nil {
				return types.NewErr("claim %q failed to unmarshal: %w", name, err)
			}
			return valueOf(value)
		})
	}
	return m
}

// userValue returns the variable user of expressions.
func userValue(u *request.User) *lazy.MapValue {
	m := lazy.NewMapValue(types.NewObjectType("kubernetes.UserInfo"))
	for name, value := range map[string]any{"username": u.Name, "uid": u.UID, "groups": u.Groups, "extra": u.Extra} {
		m.Append(name, func(*lazy.MapValue) ref.Val { return valueOf(value) })
	}
	return m
}

func valueOf(value any) ref.Val { return unescaping(types.DefaultTypeAdapter.NativeToValue(value)) }

// unescaping resolves escaped names in nested maps: the expression foo__dot__bar finds the field
// foo.bar.
func unescaping(value ref.Val) ref.Val {
	switch v := value.(type) {
	case traits.Mapper:
		return &escapedMap{v}
	case traits.Lister:
		return &escapedList{v}
	default:
		return value
	}
}

type escapedMap struct{ traits.Mapper }

// Find implements traits.Mapper.
func (m *escapedMap) Find(key ref.Val) (ref.Val, bool) {
	if escaped, ok := key.(types.String); ok {
		if name, ok := cel.Unescape(string(escaped)); ok {
			key = types.String(name)
		}
	}
	value, ok := m.Mapper.Find(key)
	return unescaping(value), ok
}

type escapedList struct{ traits.Lister }

// Get implements traits.Lister.
func (l *escapedList) Get(index ref.Val) ref.Val { return unescaping(l.Lister.Get(index)) }
