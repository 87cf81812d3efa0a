package jsonschema

import (
	"encoding/json"
	"reflect"
	"sort"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// GoNames is a schema, or a value with schemas in it, as error messages of
// Kubernetes show it: with all its fields, by the names that they have in Go.
type GoNames struct{ Value any }

// MarshalJSON writes the value.
func (g GoNames) MarshalJSON() ([]byte, error) {
	return appendGo(nil, reflect.ValueOf(g.Value)), nil
}

func appendGo(dst []byte, v reflect.Value) []byte {
	if raw, ok := v.Interface().(apiextensionsv1.JSON); ok {
		if len(raw.Raw) == 0 {
			return append(dst, "null"...)
		}
		return append(dst, raw.Raw...)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return appendGo(dst, v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendGo(dst, v.Index(i))
		}
		return append(dst, ']')
	case reflect.Map:
		return appendGoMap(dst, v)
	case reflect.Struct:
		dst = append(dst, '{')
		for i, field := range goFields(v.Type()) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendGoScalar(dst, field), ':')
			dst = appendGo(dst, v.FieldByName(field))
		}
		return append(dst, '}')
	default:
		return appendGoScalar(dst, v.Interface())
	}
}

func appendGoMap(dst []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(dst, "null"...)
	}
	keys := v.MapKeys()
	sort.Slice(keys, func(i, k int) bool { return keys[i].String() < keys[k].String() })
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendGoScalar(dst, k.String()), ':')
		dst = appendGo(dst, v.MapIndex(k))
	}
	return append(dst, '}')
}

func appendGoScalar(dst []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, b...)
}

// goFields returns the names of the fields of a struct in Kubernetes' order.
func goFields(t reflect.Type) []string {
	if t == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() {
		return GoFields()
	}
	var names []string
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	return names
}

// GoFields returns the names of the fields of a schema in the order in which
// Kubernetes has them, where Nullable follows Type.
func GoFields() []string {
	const moved = "Nullable"
	t := reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()
	var names []string
	for i := range t.NumField() {
		name := t.Field(i).Name
		if name == moved {
			continue
		}
		names = append(names, name)
		if name == "Type" {
			names = append(names, moved)
		}
	}
	return names
}
