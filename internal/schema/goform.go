package schema

import (
	"bytes"
	"encoding/json"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// asGo is a part of a schema as error messages show it: by the names that its
// fields have in Go.
type asGo struct{ v any }

// MarshalJSON writes the value with every field, whatever it holds.
func (g asGo) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := writeGo(&b, reflect.ValueOf(g.v))
	return b.Bytes(), err
}

func writeGo(b *bytes.Buffer, v reflect.Value) error {
	if raw, ok := v.Interface().(apiextensionsv1.JSON); ok {
		if len(raw.Raw) == 0 {
			b.WriteString("null")
		}
		b.Write(raw.Raw)
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		return writeGo(b, v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeGo(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case reflect.Map:
		return writeGoMap(b, v)
	case reflect.Struct:
		b.WriteByte('{')
		for i, f := range goFields(v.Type()) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + f + `":`)
			if err := writeGo(b, v.FieldByName(f)); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	default:
		data, err := json.Marshal(v.Interface())
		b.Write(data)
		return err
	}
}

func writeGoMap(b *bytes.Buffer, v reflect.Value) error {
	if v.IsNil() {
		b.WriteString("null")
		return nil
	}
	m := map[string]json.RawMessage{}
	for it := v.MapRange(); it.Next(); {
		var value bytes.Buffer
		if err := writeGo(&value, it.Value()); err != nil {
			return err
		}
		m[it.Key().String()] = value.Bytes()
	}
	data, err := json.Marshal(m)
	b.Write(data)
	return err
}

// goFields returns the names of the fields in upstream's order, in which
// Nullable follows Type.
func goFields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name := t.Field(i).Name
		if t == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() && name == "Nullable" {
			continue
		}
		names = append(names, name)
		if t == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() && name == "Type" {
			names = append(names, "Nullable")
		}
	}
	return names
}
