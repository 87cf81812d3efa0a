package object

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Trees are converted to Go values, and back, as runtime.DefaultUnstructuredConverter of Kubernetes
// does. That one looks up each field of a Go type in the tree by reflection. A Pod has hundreds of
// fields, of which few are set, so the code here goes the other way: it visits what is set. Forms
// that are unusual, such as a float for an integer, are left to the converter of Kubernetes, and so
// are all errors.

// NewValue returns a pointer to a new value of a struct type with the content of a tree. Unknown fields
// are skipped. With an error, the value has some of the content.
func NewValue(t reflect.Type, from Tree) (any, error) {
	v := reflect.New(t)
	if planOf(t).read(from, v.Elem()) {
		return v.Interface(), nil
	}
	v = reflect.New(t)
	return v.Interface(), runtime.DefaultUnstructuredConverter.FromUnstructured(from, v.Interface())
}

// TreeOf returns the tree of a struct, to which from points.
func TreeOf(from any) (Tree, error) {
	v := reflect.ValueOf(from).Elem()
	t, ok := planOf(v.Type()).write(v)
	if tree, isTree := t.(Tree); ok && isTree {
		return tree, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(from)
}

// A form is how a type is converted.
type form uint8

const (
	formOther form = iota // by the converter of Kubernetes
	formString
	formBool
	formInt
	formUint
	formFloat
	formBytes
	formAny
	formPointer
	formList
	formMap
	formStruct
	formItself // by its own methods
	formQuantity
	formTime
	formIntOrString
	formFields
)

// A plan converts values of one type.
type plan struct {
	typ    reflect.Type
	form   form
	elem   *plan
	fields []member
	byName map[string]*member
	entry  *value.TypeReflectCacheEntry // of a type with its own methods
}

// A member is a field of a struct, or of a struct inlined in it.
type member struct {
	*plan
	name                string
	index               []int
	omitEmpty, omitZero bool
}

// plans has the plan of each type by its reflect.Type, made at the first value of the type.
var plans = sync.OnceValue(func() *sync.Map { return new(sync.Map) })

func planOf(t reflect.Type) *plan {
	if p, ok := plans().Load(t); ok {
		return p.(*plan)
	}
	p, _ := plans().LoadOrStore(t, builder{}.plan(t))
	return p.(*plan)
}

// A builder has the plans of a type and of the types inside it. A type may contain itself.
type builder map[reflect.Type]*plan

func (b builder) plan(t reflect.Type) *plan {
	if p := b[t]; p != nil {
		return p
	}
	p := &plan{typ: t}
	b[t] = p
	p.form = formOf(t)
	switch p.form {
	case formItself:
		p.entry = value.TypeReflectEntryOf(t)
	case formPointer, formList, formMap:
		p.elem = b.plan(t.Elem())
	case formStruct:
		p.byName = map[string]*member{}
		b.members(p, t, nil)
		for i := range p.fields {
			p.byName[p.fields[i].name] = &p.fields[i]
		}
		if len(p.byName) < len(p.fields) {
			p.form = formOther // fields of the same name
		}
	}
	return p
}

// members adds the fields of t to the fields of p.
func (b builder) members(p *plan, t reflect.Type, outer []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(outer[:len(outer):len(outer)], i)
		switch {
		case name == "-":
		case name == "" && f.Anonymous && formOf(f.Type) == formStruct:
			b.members(p, f.Type, index)
		case name == "" || !f.IsExported():
			p.form = formOther
		default:
			m := member{plan: b.plan(f.Type), name: name, index: index}
			for option := range strings.SplitSeq(options, ",") {
				switch option {
				case "omitempty":
					m.omitEmpty = true
				case "omitzero":
					m.omitZero = true
				case "inline":
					p.form = formOther
				}
			}
			p.fields = append(p.fields, m)
		}
	}
}

var formsOfKinds = map[reflect.Kind]form{
	reflect.String: formString, reflect.Bool: formBool,
	reflect.Int: formInt, reflect.Int8: formInt, reflect.Int16: formInt, reflect.Int32: formInt, reflect.Int64: formInt,
	reflect.Uint: formUint, reflect.Uint8: formUint, reflect.Uint16: formUint, reflect.Uint32: formUint,
	reflect.Float32: formFloat, reflect.Float64: formFloat,
	reflect.Interface: formAny, reflect.Pointer: formPointer, reflect.Struct: formStruct,
}

func formOf(t reflect.Type) form {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return formQuantity
	case reflect.TypeFor[metav1.Time]():
		return formTime
	case reflect.TypeFor[intstr.IntOrString]():
		return formIntOrString
	case reflect.TypeFor[metav1.FieldsV1]():
		return formFields
	}
	reads := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	writes := value.TypeReflectEntryOf(t).CanConvertToUnstructured()
	switch known := formsOfKinds[t.Kind()]; {
	case t.Kind() == reflect.Pointer:
		return formPointer
	case reads && writes && (known == formOther || known == formStruct):
		return formItself
	case reads || writes:
		return formOther
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return formBytes
	case t.Kind() == reflect.Slice:
		return formList
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		return formMap
	default:
		return known
	}
}

// read sets a zero value to the content of a part of a tree. It returns false for an unusual form.
func (p *plan) read(from any, into reflect.Value) bool {
	if from == nil {
		return true
	}
	ok := false
	switch p.form {
	case formString:
		var s string
		if s, ok = from.(string); ok {
			into.SetString(s)
		}
	case formBool:
		var b bool
		if b, ok = from.(bool); ok {
			into.SetBool(b)
		}
	case formInt:
		var i int64
		if i, ok = from.(int64); ok {
			into.SetInt(i)
		}
	case formUint:
		var i int64
		if i, ok = from.(int64); ok {
			into.SetUint(uint64(i))
		}
	case formFloat:
		switch n := from.(type) {
		case int64:
			into.SetFloat(float64(n))
			return true
		case float64:
			into.SetFloat(n)
			return true
		}
	case formAny:
		into.Set(reflect.ValueOf(from))
		return true
	case formPointer:
		v := reflect.New(p.typ.Elem())
		into.Set(v)
		return p.elem.read(from, v.Elem())
	case formList:
		return p.readList(from, into)
	case formMap:
		return p.readMap(from, into)
	case formStruct:
		return p.readStruct(from, into)
	default:
		return p.readText(from, into)
	}
	return ok
}

// readText is read for types that have their own form, most of them as text.
func (p *plan) readText(from any, into reflect.Value) bool {
	s, isText := from.(string)
	switch p.form {
	case formBytes:
		data, err := base64.StdEncoding.DecodeString(s)
		into.SetBytes(data)
		return isText && err == nil
	case formQuantity:
		q, err := resource.ParseQuantity(strings.TrimSpace(s))
		*into.Addr().Interface().(*resource.Quantity) = q
		return isText && err == nil
	case formTime:
		at, err := time.Parse(time.RFC3339, s)
		*into.Addr().Interface().(*metav1.Time) = metav1.Time{Time: at.Local()}
		return isText && err == nil
	case formIntOrString:
		v := into.Addr().Interface().(*intstr.IntOrString)
		if isText {
			*v = intstr.FromString(s)
			return true
		}
		i, ok := from.(int64)
		*v = intstr.FromInt32(int32(i))
		return ok && int64(int32(i)) == i
	case formItself, formFields:
		return into.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(AppendJSON(nil, from)) == nil
	default:
		return false
	}
}

func (p *plan) readList(from any, into reflect.Value) bool {
	list, ok := from.([]any)
	if !ok || list == nil {
		return ok
	}
	into.Set(reflect.MakeSlice(p.typ, len(list), len(list)))
	for i, v := range list {
		if !p.elem.read(v, into.Index(i)) {
			return false
		}
	}
	return true
}

func (p *plan) readMap(from any, into reflect.Value) bool {
	t, ok := from.(Tree)
	if !ok || t == nil {
		return ok
	}
	into.Set(reflect.MakeMapWithSize(p.typ, len(t)))
	key := reflect.New(p.typ.Key()).Elem()
	v := reflect.New(p.typ.Elem()).Elem()
	for name, inner := range t {
		key.SetString(name)
		v.SetZero()
		if !p.elem.read(inner, v) {
			return false
		}
		into.SetMapIndex(key, v)
	}
	return true
}

func (p *plan) readStruct(from any, into reflect.Value) bool {
	t, ok := from.(Tree)
	for name, v := range t {
		if f := p.byName[name]; f != nil && !f.read(v, f.of(into)) {
			return false
		}
	}
	return ok
}

// of returns the field of a struct.
func (m *member) of(v reflect.Value) reflect.Value {
	for _, i := range m.index {
		v = v.Field(i)
	}
	return v
}
