package celrule

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// value returns the CEL value of v at n. If v is of another type than n, the value is an error, with
// which rules that use it fail.
func (n *node) value(v any) ref.Val {
	if v == nil {
		if n.nullable {
			return types.NullValue
		}
		return types.NewErr("invalid data, got null for schema with nullable=false")
	}
	switch n.kind {
	case objectKind:
		if m, ok := v.(map[string]any); ok {
			return &object{node: n, fields: m}
		}
		return types.NewErr("invalid data, expected a map for the provided schema with type=object")
	case listKind:
		return n.list(v)
	case boolKind:
		if b, ok := v.(bool); ok {
			return types.Bool(b)
		}
		return types.NewErr("invalid data, expected bool, got %T", v)
	case integerKind:
		if i, ok := v.(int64); ok {
			return types.Int(i)
		}
		return types.NewErr("invalid data, expected int, got %T", v)
	case numberKind:
		switch v := v.(type) {
		case float64:
			return types.Double(v)
		case int64:
			return types.Double(v)
		}
		return types.NewErr("invalid data, expected float, got %T", v)
	case intOrStringKind:
		switch v := v.(type) {
		case string:
			return types.String(v)
		case int64:
			return types.Int(v)
		}
		return types.NewErr("invalid data, expected XIntOrString value to be either a string or integer")
	case noKind:
		if n.preserve {
			return &opaque{v}
		}
		return types.NewErr("invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got %s", n.typeName)
	default:
		s, ok := v.(string)
		if !ok {
			return types.NewErr("invalid data, expected string, got %T", v)
		}
		return n.text(s)
	}
}

// text presents a string according to its format.
func (n *node) text(s string) ref.Val {
	switch n.kind {
	case durationKind:
		d, err := strfmt.ParseDuration(s)
		if err != nil {
			return types.NewErr("Invalid duration %s: %v", s, err)
		}
		return types.Duration{Duration: d}
	case dateKind:
		t, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return types.NewErr("Invalid date formatted string %s: %v", s, err)
		}
		return types.Timestamp{Time: t}
	case dateTimeKind:
		t, err := strfmt.ParseDateTime(s)
		if err != nil {
			return types.NewErr("Invalid date-time formatted string %s: %v", s, err)
		}
		return types.Timestamp{Time: time.Time(t)}
	case bytesKind:
		b, err := base64.URLEncoding.DecodeString(s)
		if err != nil {
			return types.NewErr("Invalid byte formatted string %s: %v", s, err)
		}
		return types.Bytes(b)
	default:
		return types.String(s)
	}
}

func (n *node) list(v any) ref.Val {
	elements, ok := v.([]any)
	if !ok {
		return types.NewErr("invalid data, expected an array for the provided schema with type=array")
	}
	if n.items == nil {
		return types.NewErr("invalid array type, expected Items with a non-empty Schema")
	}
	l := list{node: n.items.seen(), elements: elements}
	switch n.listType {
	case "map":
		return &mapList{list: l, keys: n.escapedKeys}
	case "set":
		return &setList{list: l}
	case "", "atomic":
		return &l
	default:
		return types.NewErr("invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got %s", n.listType)
	}
}

// opaque is data without a schema. Expressions cannot access it, but it takes part in comparisons.
type opaque struct{ data any }

func (o *opaque) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields", t)
}

func (o *opaque) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields", t.TypeName())
}

func (o *opaque) Equal(other ref.Val) ref.Val { return types.Bool(equal(o.data, other.Value())) }
func (o *opaque) Type() ref.Type              { return types.UnknownType }
func (o *opaque) Value() any                  { return o.data }

// equal compares values of an object. 1 and 1.0 are two.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		switch b.(type) {
		case map[string]any, []any:
			return false
		}
		return a == b
	}
}
