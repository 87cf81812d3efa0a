package gotype

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
)

// Coerce returns obj as the Go type writes it after it has read it. It may change
// obj.
func (t *Type) Coerce(obj map[string]any) (map[string]any, error) {
	if t.Fits(obj) {
		return obj, nil
	}
	return t.through(obj)
}

// Fits reports whether Coerce does not need a value of the type for obj. If so, it brings obj into form. Such
// an object has no unknown fields.
func (t *Type) Fits(obj map[string]any) bool {
	switch t.fieldsFit(obj) {
	case foreign:
		return false
	case lacking:
		t.fill(obj)
	}
	return true
}

// fill adds fields that the type always encodes. Clients omit them: a status, or the resources of a
// container.
func (t *Type) fill(v any) {
	switch t.form {
	case formSchema, formSchemaOrBool:
		t.elem.fill(v)
	case formStruct:
		m, _ := v.(map[string]any)
		for k, e := range m {
			t.fields[k].fill(e)
		}
		for _, k := range t.written {
			if _, ok := m[k]; !ok {
				m[k] = runtime.DeepCopyJSONValue(t.zero()[k])
			}
		}
	case formMap:
		m, _ := v.(map[string]any)
		for _, e := range m {
			t.elem.fill(e)
		}
	case formList:
		list, _ := v.([]any)
		for _, e := range list {
			t.elem.fill(e)
		}
	}
}

// through puts obj into a value of the type and writes that.
func (t *Type) through(obj map[string]any) (map[string]any, error) {
	v := reflect.New(t.typ).Interface()
	data, err := json.Marshal(asWritten(obj))
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, v); err != nil {
		return nil, err
	}
	if data, err = json.Marshal(v); err != nil {
		return nil, err
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	t.emptyBytes(out)
	return out, nil
}

// emptyBytes replaces null by empty bytes in maps and lists, where nil bytes are encoded as null:
// Kubernetes stores objects of Go types as protobuf, which has no difference between the two.
func (t *Type) emptyBytes(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			switch of := t.fields[k]; {
			case t.form == formStruct && of.Type != nil:
				of.emptyBytes(e)
			case t.form != formMap:
			case e == nil && t.elem.form == formBytes:
				v[k] = ""
			default:
				t.elem.emptyBytes(e)
			}
		}
	case []any:
		for i, e := range v {
			switch {
			case t.form != formList:
			case e == nil && t.elem.form == formBytes:
				v[i] = ""
			default:
				t.elem.emptyBytes(e)
			}
		}
	}
}

// asWritten returns v with numbers as a client may have written them: a decoded float is not valid for
// an integer of a Go type, even without a fraction. A large number is written without one.
func asWritten(v any) any {
	switch v := v.(type) {
	case float64:
		if v != math.Trunc(v) || math.Abs(v) >= 1e21 {
			return v
		}
		s := strconv.FormatFloat(v, 'f', 0, 64)
		if v >= -1<<63 && v < 1<<63 {
			s += ".0" // without it, the text is that of an int64
		}
		return json.Number(s)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			out[name] = asWritten(value)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = asWritten(v[i])
		}
		return out
	default:
		return v
	}
}
