package crd

import (
	"encoding/json"
	"reflect"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// shown is a value in an error message about a hub. It is written with the names
// of Go fields, all of them, in their order.
type shown struct{ value any }

// MarshalJSON writes the value.
func (s shown) MarshalJSON() ([]byte, error) { return appendShown(nil, reflect.ValueOf(s.value)), nil }

// shownVersions are the versions of a spec in the form of a hub.
func (h *hub) shownVersions() any {
	if h.spec.Versions == nil {
		return shown{[]v1.CustomResourceDefinitionVersion(nil)}
	}
	out := make([]v1.CustomResourceDefinitionVersion, len(h.versions))
	for i := range out {
		out[i] = h.spec.Versions[i]
		p := &h.versions[i]
		out[i].Schema, out[i].Subresources = p.schema, p.subresources
		out[i].AdditionalPrinterColumns, out[i].SelectableFields = p.columns, p.selectable
	}
	return shown{out}
}

func appendShown(dst []byte, v reflect.Value) []byte {
	if v.Type() == reflect.TypeFor[v1.JSON]() {
		raw := v.Interface().(v1.JSON).Raw
		if len(raw) == 0 {
			return append(dst, "null"...)
		}
		return append(dst, raw...)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return appendShown(dst, v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendShown(dst, v.Index(i))
		}
		return append(dst, ']')
	case reflect.Map:
		return appendShownMap(dst, v)
	case reflect.Struct:
		dst = append(dst, '{')
		for i, field := range shownFields(v.Type()) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendShownPlain(dst, field)
			dst = append(dst, ':')
			dst = appendShown(dst, v.FieldByName(field))
		}
		return append(dst, '}')
	default:
		return appendShownPlain(dst, v.Interface())
	}
}

func appendShownMap(dst []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(dst, "null"...)
	}
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendShownPlain(dst, k)
		dst = append(dst, ':')
		dst = appendShown(dst, v.MapIndex(reflect.ValueOf(k).Convert(v.Type().Key())))
	}
	return append(dst, '}')
}

func appendShownPlain(dst []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, b...)
}

// shownFields returns the fields of a struct in the order of the hub's types.
func shownFields(t reflect.Type) []string {
	var fields []string
	for i := range t.NumField() {
		fields = append(fields, t.Field(i).Name)
	}
	if t == reflect.TypeFor[v1.JSONSchemaProps]() {
		return rootFields()
	}
	return fields
}

// rootFields are the fields of a schema in the order in which they are looked at.
func rootFields() []string {
	const moved = "Nullable"
	var fields []string
	for i := range reflect.TypeFor[v1.JSONSchemaProps]().NumField() {
		name := reflect.TypeFor[v1.JSONSchemaProps]().Field(i).Name
		if name == moved {
			continue
		}
		fields = append(fields, name)
		if name == "Type" {
			fields = append(fields, moved)
		}
	}
	return fields
}
