package rule

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
)

// Shown returns a value as kube-apiserver shows it in an error. kube-apiserver validates internal
// types, which have the fields of the API types but no JSON names: all fields are shown by Go name.
func Shown(value any) any {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if !v.IsValid() || !ofAPI(elemOf(v.Type())) {
		return value
	}
	var b bytes.Buffer
	write(&b, v)
	return json.RawMessage(b.Bytes())
}

// ofAPI reports whether a type is a struct of the API with an internal type.
func ofAPI(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "k8s.io/api/")
}

func write(b *bytes.Buffer, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		write(b, v.Elem())
	case v.Kind() == reflect.Slice && !v.IsNil() && ofAPI(elemOf(v.Type())):
		b.WriteByte('[')
		for i := range v.Len() {
			comma(b)
			write(b, v.Index(i))
		}
		b.WriteByte(']')
	case v.Kind() == reflect.Struct && ofAPI(v.Type()):
		b.WriteByte('{')
		fields(b, v)
		b.WriteByte('}')
	default:
		text, err := json.Marshal(v.Interface())
		if err != nil {
			text = []byte("null")
		}
		b.Write(text)
	}
}

func fields(b *bytes.Buffer, v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case isInlined(f) && ofAPI(f.Type):
			fields(b, v.Field(i))
		case f.Type == reflect.TypeFor[metav1.TypeMeta](): // empty in internal types
		case f.Anonymous:
			if text, err := json.Marshal(v.Field(i).Interface()); err == nil && len(text) > len("{}") {
				comma(b)
				b.Write(text[1 : len(text)-1])
			}
		case f.IsExported():
			comma(b)
			b.WriteString(`"` + f.Name + `":`)
			write(b, v.Field(i))
		}
	}
}

// comma writes a separator unless the buffer is at the start of a list or struct.
func comma(b *bytes.Buffer) {
	if last := b.Bytes()[b.Len()-1]; last != '{' && last != '[' {
		b.WriteByte(',')
	}
}

// Diff returns the differing lines of two values, as kube-apiserver shows them.
func Diff(old, value any) string { return diff.Diff(Shown(old), Shown(value)) }
