// Package gotype knows how encoding/json writes Go types.
//
// It brings objects into the form of their Go type. Nearly all objects have that form
// already; the package detects this without making a value of the type. It knows nothing of
// schemas.
package gotype

import (
	"encoding"
	"encoding/json"
	"iter"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Type describes the JSON encoding of a Go type. It distinguishes trees that the type would decode
// and encode unchanged from those that need a round trip through the type. It is safe for concurrent
// use.
type Type struct {
	typ  reflect.Type
	form form
	bits int // of a number

	elem   *Type                // of a list or map
	fields map[string]typeField // of a struct, by name
	// written are the fields that are always encoded.
	written []string
	// zero returns the encoding of the zero value of a struct.
	zero func() map[string]any
}

// A typeField is a field of a struct.
type typeField struct {
	*Type
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
	formQuantity                 // resource.Quantity
	formIntOrString              //
	formList                     //
	formMap                      //
	formStruct                   //
	formSchema                   // a schema, or another value that only the type can check
	formSchemaOrBool             //
)

// A reader reads Go types. Types that contain themselves are read once.
type reader map[reflect.Type]*Type

func (g reader) read(t reflect.Type) *Type {
	if known := g[t]; known != nil {
		return known
	}
	n := &Type{typ: t}
	g[t] = n
	switch t {
	case reflect.TypeFor[metav1.Time]():
		n.form = formTime
		return n
	case reflect.TypeFor[metav1.MicroTime]():
		n.form = formMicro
		return n
	case reflect.TypeFor[resource.Quantity]():
		n.form = formQuantity
		return n
	case reflect.TypeFor[intstr.IntOrString]():
		n.form = formIntOrString
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
	if ReadsItself(t) {
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
		n.form, n.elem = formList, g.read(Deref(t.Elem()))
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			n.form, n.elem = formMap, g.read(Deref(t.Elem()))
		}
	case reflect.Struct:
		n.form, n.fields = formStruct, map[string]typeField{}
		g.readFields(n, t)
		n.zero = sync.OnceValue(func() map[string]any {
			zero, err := n.through(map[string]any{})
			if err != nil {
				panic(err) // the type cannot decode its own encoding
			}
			return zero
		})
	}
	return n
}

func (g reader) readFields(n *Type, t reflect.Type) {
	for f := range Fields(t) {
		field := typeField{Type: g.read(Deref(f.Type)), pointer: f.Type.Kind() == reflect.Pointer, omitEmpty: f.OmitEmpty, omitZero: f.OmitZero}
		n.fields[f.JSONName] = field
		// omitempty leaves no struct out, and a time is a struct.
		isStruct := f.Type.Kind() == reflect.Struct
		if !f.OmitZero && (!f.OmitEmpty || isStruct) {
			n.written = append(n.written, f.JSONName)
		}
	}
}

// A Field is a field of encoding/json.
type Field struct {
	reflect.StructField
	JSONName            string
	OmitEmpty, OmitZero bool
}

// Fields yields the fields of a struct, including those of inlined structs.
func Fields(t reflect.Type) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			inline := f.Anonymous && name == ""
			switch {
			case name == "-" || !f.IsExported():
			case inline && Deref(f.Type).Kind() == reflect.Struct:
				for inner := range Fields(Deref(f.Type)) {
					if !yield(inner) {
						return
					}
				}
			default:
				if name == "" {
					name = f.Name
				}
				if !yield(Field{f, name, hasOption(options, "omitempty"), hasOption(options, "omitzero")}) {
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

// Deref returns the type that a pointer, or a pointer to one, points to.
func Deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// ReadsItself reports whether a type reads its JSON itself.
func ReadsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// A fit is the similarity of a tree to its encoding after a round trip through its type.
type fit uint8

const (
	foreign fit = iota // it must be read and written
	lacking            // equal except for always encoded fields
	whole              // it is the same
)

func fits(same bool) fit {
	if same {
		return whole
	}
	return foreign
}

// Canonical reports whether a round trip through the type leaves v unchanged.
func (t *Type) Canonical(v any) bool { return t.fit(v) == whole }

func (t *Type) fit(v any) fit {
	switch t.form {
	case formAny:
		return fits(v != nil)
	case formString:
		_, ok := v.(string)
		return fits(ok)
	case formBool:
		_, ok := v.(bool)
		return fits(ok)
	case formInt:
		i, ok := v.(int64)
		return fits(ok && (t.bits == 64 || i >= -1<<(t.bits-1) && i < 1<<(t.bits-1)))
	case formUint:
		i, ok := v.(int64)
		return fits(ok && i >= 0 && (t.bits == 64 || i < 1<<t.bits))
	case formFloat:
		if i, ok := v.(int64); ok {
			return fits(t.bits == 64 && i >= -1<<53 && i <= 1<<53)
		}
		f, ok := v.(float64)
		return fits(ok && t.bits == 64 && f != math.Trunc(f))
	case formList:
		list, ok := v.([]any)
		least := fits(ok)
		for i := 0; i < len(list) && least != foreign; i++ {
			least = min(least, t.elem.fit(list[i]))
		}
		return least
	case formMap:
		m, ok := v.(map[string]any)
		least := fits(ok)
		for _, e := range m {
			if least = min(least, t.elem.fit(e)); least == foreign {
				break
			}
		}
		return least
	case formStruct:
		m, ok := v.(map[string]any)
		return min(fits(ok), t.fieldsFit(m))
	case formSchemaOrBool:
		if _, ok := v.(bool); ok {
			return whole
		}
		return t.elem.fit(v)
	case formSchema:
		return t.elem.fit(v)
	default:
		return fits(t.canonicalText(v))
	}
}

// canonicalText is Canonical for types that are written as text with a form of its own.
func (t *Type) canonicalText(v any) bool {
	s, ok := v.(string)
	switch t.form {
	case formBytes:
		return ok && canonicalBase64(s)
	case formTime:
		return v == nil || ok && canonicalTime(s, time.RFC3339)
	case formMicro:
		return v == nil || ok && canonicalTime(s, metav1.RFC3339Micro)
	case formQuantity:
		return ok && canonicalQuantity(s)
	case formIntOrString:
		i, number := v.(int64)
		return ok || number && i >= math.MinInt32 && i <= math.MaxInt32
	default:
		return false
	}
}

// fieldsFit returns the fit of the fields of a struct.
func (t *Type) fieldsFit(m map[string]any) fit {
	least := whole
	for k, v := range m {
		f, ok := t.fields[k]
		switch {
		case !ok:
			return foreign
		case v == nil && (f.pointer || f.omitZero):
			return foreign
		case f.omitEmpty && !f.pointer && f.empty(v):
			return foreign
		}
		of := f.fit(v)
		// A struct that has its zero value when it is whole is not written.
		if f.omitZero && f.form == formStruct && (of == lacking || reflect.DeepEqual(v, any(f.zero()))) {
			return foreign
		}
		if least = min(least, of); least == foreign {
			return foreign
		}
	}
	for _, k := range t.written {
		if _, ok := m[k]; !ok {
			return lacking
		}
	}
	return least
}

// empty reports whether v is a value that omitempty leaves out. A struct never
// is, nor a time.
func (t *Type) empty(v any) bool {
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

// canonicalQuantity reports whether s is a quantity as Kubernetes writes it.
func canonicalQuantity(s string) bool {
	q, err := resource.ParseQuantity(s)
	return err == nil && q.String() == s
}

func canonicalTime(s, layout string) bool {
	if !strings.HasSuffix(s, "Z") {
		return false
	}
	t, err := time.Parse(layout, s)
	if err != nil || t.IsZero() {
		return false
	}
	var b [40]byte
	return string(t.UTC().AppendFormat(b[:0], layout)) == s
}

// canonicalBase64 reports whether s is base64 as Go writes it.
func canonicalBase64(s string) bool {
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

// Of reads a Go type.
func Of(t reflect.Type) *Type { return reader{}.read(Deref(t)) }

// ObjectMeta is the type of every object's metadata. It is read once.
var ObjectMeta = sync.OnceValue(func() *Type { return Of(reflect.TypeFor[metav1.ObjectMeta]()) })

// Elements are the types inside a value of a type. At most one of them is set.
type Elements struct {
	Fields map[string]*Type // of a struct
	Items  *Type            // of a list
	Values *Type            // of a map
	// Opaque marks a type with its own encoding, or any value.
	Opaque bool
}

// Elements returns the types inside a value of the type.
func (t *Type) Elements() (p Elements) {
	switch t.form {
	case formAny, formOpaque, formQuantity, formIntOrString, formSchema, formSchemaOrBool:
		p.Opaque = true
	case formList:
		p.Items = t.elem
	case formMap:
		p.Values = t.elem
	case formStruct:
		p.Fields = make(map[string]*Type, len(t.fields))
		for name, f := range t.fields {
			p.Fields[name] = f.Type
		}
	}
	return p
}
