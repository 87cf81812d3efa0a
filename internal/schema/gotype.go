package schema

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A goType is how a Go type looks when encoding/json has written it. It tells a
// tree that the type would give back as it is from one that must go through a
// value of the type to be brought into form.
type goType struct {
	typ  reflect.Type
	form form
	bits int // of a number

	elem   *goType            // of a list or map
	fields map[string]goField // of a struct, by name
	// written are the fields that are there whatever the value.
	written []string
}

// A goField is a field of a struct.
type goField struct {
	*goType
	pointer   bool
	omitEmpty bool
	omitZero  bool
}

// A form is the kind of JSON a Go type is written as.
type form uint8

const (
	formOpaque       form = iota // known to the type alone
	formAny                      // any JSON
	formString                   //
	formBool                     //
	formInt                      //
	formUint                     //
	formFloat                    //
	formBytes                    // base64
	formTime                     // RFC 3339 in seconds, UTC, null for the zero time
	formMicro                    // the same in microseconds
	formList                     //
	formMap                      //
	formStruct                   //
	formSchema                   // a schema where it may be something else, which only the type knows
	formSchemaOrBool             //
)

// goTypes reads Go types. Types that contain themselves are read once.
type goTypes map[reflect.Type]*goType

func (g goTypes) read(t reflect.Type) *goType {
	if known := g[t]; known != nil {
		return known
	}
	n := &goType{typ: t}
	g[t] = n
	switch t {
	case reflect.TypeFor[metav1.Time]():
		n.form = formTime
		return n
	case reflect.TypeFor[metav1.MicroTime]():
		n.form = formMicro
		return n
	case reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[apiextensionsv1.JSON]():
		n.form = formAny
		return n
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
		n.form, n.elem = formSchema, g.read(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		return n
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():
		n.form, n.elem = formSchemaOrBool, g.read(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		return n
	}
	if ownJSON(t) {
		return n
	}
	switch t.Kind() {
	case reflect.Interface:
		n.form = formAny
	case reflect.String:
		n.form = formString
	case reflect.Bool:
		n.form = formBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.form, n.bits = formInt, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.form, n.bits = formUint, t.Bits()
	case reflect.Float32, reflect.Float64:
		n.form, n.bits = formFloat, t.Bits()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			n.form = formBytes
			break
		}
		n.form, n.elem = formList, g.read(deref(t.Elem()))
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			n.form, n.elem = formMap, g.read(deref(t.Elem()))
		}
	case reflect.Struct:
		n.form, n.fields = formStruct, map[string]goField{}
		g.readFields(n, t)
	}
	return n
}

func (g goTypes) readFields(n *goType, t reflect.Type) {
	for f := range structFields(t) {
		field := goField{goType: g.read(deref(f.Type)), pointer: f.Type.Kind() == reflect.Pointer, omitEmpty: f.omitEmpty, omitZero: f.omitZero}
		n.fields[f.name] = field
		// omitempty leaves no struct out, and a time is a struct.
		isStruct := f.Type.Kind() == reflect.Struct
		if !f.omitZero && (!f.omitEmpty || isStruct) {
			n.written = append(n.written, f.name)
		}
	}
}

// A structField is a field as encoding/json sees it.
type structField struct {
	reflect.StructField
	name                string
	omitEmpty, omitZero bool
}

// structFields yields the fields of a struct with those of the structs inlined
// in it.
func structFields(t reflect.Type) func(yield func(structField) bool) {
	return func(yield func(structField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			inline := f.Anonymous && name == ""
			switch {
			case name == "-" || !f.IsExported():
			case inline && deref(f.Type).Kind() == reflect.Struct:
				for inner := range structFields(deref(f.Type)) {
					if !yield(inner) {
						return
					}
				}
			default:
				if name == "" {
					name = f.Name
				}
				if !yield(structField{f, name, hasOption(options, "omitempty"), hasOption(options, "omitzero")}) {
					return
				}
			}
		}
	}
}

func hasOption(options, name string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == name {
			return true
		}
	}
	return false
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// ownJSON reports whether a type reads its JSON itself.
func ownJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// settled reports whether v is what the type writes after it has read v.
func (t *goType) settled(v any) bool {
	switch t.form {
	case formAny:
		return v != nil
	case formString:
		_, ok := v.(string)
		return ok
	case formBool:
		_, ok := v.(bool)
		return ok
	case formInt:
		i, ok := v.(int64)
		return ok && (t.bits == 64 || i >= -1<<(t.bits-1) && i < 1<<(t.bits-1))
	case formUint:
		i, ok := v.(int64)
		return ok && i >= 0 && (t.bits == 64 || i < 1<<t.bits)
	case formFloat:
		if i, ok := v.(int64); ok {
			return t.bits == 64 && i >= -1<<53 && i <= 1<<53
		}
		f, ok := v.(float64)
		return ok && t.bits == 64 && f != math.Trunc(f)
	case formBytes:
		s, ok := v.(string)
		return ok && settledBase64(s)
	case formTime:
		return v == nil || settledTime(v, time.RFC3339)
	case formMicro:
		return v == nil || settledTime(v, metav1.RFC3339Micro)
	case formList:
		list, ok := v.([]any)
		for _, e := range list {
			if !t.elem.settled(e) {
				return false
			}
		}
		return ok
	case formMap:
		m, ok := v.(map[string]any)
		for _, e := range m {
			if !t.elem.settled(e) {
				return false
			}
		}
		return ok
	case formStruct:
		m, ok := v.(map[string]any)
		return ok && t.settledFields(m) && !t.lacks(m)
	case formSchemaOrBool:
		if _, ok := v.(bool); ok {
			return true
		}
		return t.elem.settled(v)
	case formSchema:
		return t.elem.settled(v)
	default:
		return false
	}
}

// lacks reports whether a field is not there that is written whatever its value.
func (t *goType) lacks(m map[string]any) bool {
	for _, k := range t.written {
		if _, ok := m[k]; !ok {
			return true
		}
	}
	return false
}

// settledFields reports whether the fields that are there are settled.
func (t *goType) settledFields(m map[string]any) bool {
	for k, v := range m {
		f, ok := t.fields[k]
		switch {
		case !ok:
			return false
		case v == nil && (f.pointer || f.omitZero):
			return false
		case f.omitEmpty && !f.pointer && f.empty(v):
			return false
		case !f.settled(v):
			return false
		}
	}
	return true
}

// empty reports whether v is a value that omitempty leaves out. A struct never
// is, nor a time.
func (t *goType) empty(v any) bool {
	switch t.form {
	case formString, formBytes:
		return v == ""
	case formBool:
		return v == false
	case formInt, formUint:
		return v == int64(0)
	case formFloat:
		return v == float64(0) || v == int64(0)
	case formList:
		list, _ := v.([]any)
		return len(list) == 0
	case formMap:
		m, _ := v.(map[string]any)
		return len(m) == 0
	}
	return false
}

func settledTime(v any, layout string) bool {
	s, ok := v.(string)
	if !ok || !strings.HasSuffix(s, "Z") {
		return false
	}
	t, err := time.Parse(layout, s)
	if err != nil || t.IsZero() {
		return false
	}
	var b [40]byte
	return string(t.UTC().AppendFormat(b[:0], layout)) == s
}

// settledBase64 reports whether s is base64 as Go writes it.
func settledBase64(s string) bool {
	if len(s)%4 != 0 {
		return false
	}
	data := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	var last byte
	for i := range len(data) {
		c := data[i]
		switch {
		case c >= 'A' && c <= 'Z':
			last = c - 'A'
		case c >= 'a' && c <= 'z':
			last = c - 'a' + 26
		case c >= '0' && c <= '9':
			last = c - '0' + 52
		case c == '+':
			last = 62
		case c == '/':
			last = 63
		default:
			return false
		}
	}
	switch len(s) - len(data) {
	case 1:
		return last&3 == 0
	case 2:
		return last&15 == 0
	}
	return true
}

// typeOf reads a Go type, once for the types that every kind has.
func typeOf(t reflect.Type) *goType { return goTypes{}.read(t) }

// metaType is the type of every object's metadata.
var metaType = sync.OnceValue(func() *goType { return typeOf(reflect.TypeFor[metav1.ObjectMeta]()) })
