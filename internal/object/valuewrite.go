package object

import (
	"encoding/base64"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// write returns a part of a tree for an addressable value. It returns false for an unusual form.
func (p *plan) write(v reflect.Value) (any, bool) {
	switch p.form {
	case formString:
		return v.String(), true
	case formBool:
		return v.Bool(), true
	case formInt:
		return v.Int(), true
	case formUint:
		return int64(v.Uint()), true
	case formFloat:
		return v.Float(), true
	case formBytes:
		if v.IsNil() {
			return nil, true
		}
		return base64.StdEncoding.EncodeToString(v.Bytes()), true
	case formPointer:
		if v.IsNil() {
			return nil, true
		}
		return p.elem.write(v.Elem())
	case formList:
		return p.writeList(v)
	case formMap:
		return p.writeMap(v)
	case formStruct:
		return p.writeStruct(v)
	default:
		return p.writeText(v)
	}
}

// writeText is write for types that have their own form.
func (p *plan) writeText(v reflect.Value) (any, bool) {
	switch p.form {
	case formQuantity:
		return v.Addr().Interface().(*resource.Quantity).String(), true
	case formTime:
		return v.Addr().Interface().(*metav1.Time).ToUnstructured(), true
	case formIntOrString:
		switch n := v.Addr().Interface().(*intstr.IntOrString); n.Type {
		case intstr.Int:
			return int64(n.IntVal), true
		case intstr.String:
			return n.StrVal, true
		}
	case formFields:
		if t, ok := ReadFields(v.Addr().Interface().(*metav1.FieldsV1).GetRawBytes()); ok {
			return t, true
		}
	case formItself:
		t, err := p.entry.ToUnstructured(v)
		return t, err == nil
	}
	return nil, false
}

func (p *plan) writeList(v reflect.Value) (any, bool) {
	if v.IsNil() {
		return nil, true
	}
	list := make([]any, v.Len())
	for i := range list {
		var ok bool
		if list[i], ok = p.elem.write(v.Index(i)); !ok {
			return nil, false
		}
	}
	return list, true
}

func (p *plan) writeMap(v reflect.Value) (any, bool) {
	if v.IsNil() {
		return nil, true
	}
	t := make(Tree, v.Len())
	inner := reflect.New(p.typ.Elem()).Elem() // addressable, which a value of a map is not
	for i := v.MapRange(); i.Next(); {
		inner.SetIterValue(i)
		part, ok := p.elem.write(inner)
		if !ok {
			return nil, false
		}
		t[i.Key().String()] = part
	}
	return t, true
}

func (p *plan) writeStruct(v reflect.Value) (any, bool) {
	t := Tree{}
	for i := range p.fields {
		f := &p.fields[i]
		field := f.of(v)
		if f.omitEmpty && f.isEmpty(field) || f.omitZero && field.IsZero() {
			continue
		}
		part, ok := f.write(field)
		if !ok {
			return nil, false
		}
		t[f.name] = part
	}
	return t, true
}

// isEmpty reports whether omitempty omits a value. It omits no struct.
func (p *plan) isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		return false
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}
