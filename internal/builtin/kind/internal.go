package kind

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Internal is a value as Kubernetes shows it in errors which it finds in an object as it
// has it inside: with the names of Go. Quantities and the types of metadata look as ever.
func Internal(v any) json.Marshaler { return internal{v} }

type internal struct{ value any }

// MarshalJSON writes the value.
func (i internal) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	err := writeInternal(&out, reflect.ValueOf(i.value))
	return out.Bytes(), err
}

func writeInternal(out *bytes.Buffer, v reflect.Value) error {
	t := v.Type()
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return writeInternal(out, v.Elem())
	case t.Kind() == reflect.Struct && !isPublic(t):
		out.WriteByte('{')
		if err := writeMembers(out, v); err != nil {
			return err
		}
		out.WriteByte('}')
		return nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && !v.IsNil():
		for i := range v.Len() {
			out.WriteByte("[,"[min(i, 1)])
			if err := writeInternal(out, v.Index(i)); err != nil {
				return err
			}
		}
		if v.Len() == 0 {
			out.WriteByte('[')
		}
		out.WriteByte(']')
		return nil
	}
	data, err := json.Marshal(v.Interface())
	out.Write(data)
	return err
}

// writeMembers writes the fields of a struct. Those of one that is inlined are among them.
func writeMembers(out *bytes.Buffer, v reflect.Value) error {
	divide := func() {
		if !bytes.HasSuffix(out.Bytes(), []byte("{")) {
			out.WriteByte(',')
		}
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous && isPublic(f.Type):
			data, err := json.Marshal(v.Field(i).Interface())
			if err != nil {
				return err
			}
			if len(data) > len("{}") {
				divide()
				out.Write(data[1 : len(data)-1])
			}
		case f.Anonymous:
			if err := writeMembers(out, v.Field(i)); err != nil {
				return err
			}
		default:
			divide()
			out.WriteString(`"` + f.Name + `":`)
			if err := writeInternal(out, v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isPublic reports whether a type is one that Kubernetes has inside, too.
func isPublic(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/") }
