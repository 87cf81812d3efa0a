package builtin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// A structField is a field of a Go type as JSON has it.
type structField struct {
	name     string
	of       reflect.Type
	enum     []string
	required bool // encoded even when it is empty
}

// definitions are upstream's OpenAPI definitions; they know the enums.
var definitions = sync.OnceValue(func() map[string]common.OpenAPIDefinition {
	return openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) })
})

var fieldCache sync.Map // of reflect.Type to []structField

func fieldsOf(t reflect.Type) []structField {
	if known, ok := fieldCache.Load(t); ok {
		return known.([]structField)
	}
	var enums spec.Schema
	if named, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		enums = definitions()[named.OpenAPIModelName()].Schema
	}
	var out []structField
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			out = append(out, fieldsOf(deref(f.Type))...)
		case name != "":
			property := enums.Properties[name]
			values := property.Enum
			if property.Items != nil && property.Items.Schema != nil {
				values = property.Items.Schema.Enum
			}
			field := structField{name: name, of: f.Type, required: !strings.Contains(options, "omit")}
			for _, v := range values {
				if s, ok := v.(string); ok {
					field.enum = append(field.enum, s)
				}
			}
			out = append(out, field)
		}
	}
	fieldCache.Store(t, out)
	return out
}

// fieldType is the type of a field of a struct, or nil.
func fieldType(t reflect.Type, name string) reflect.Type {
	if t == nil || t.Kind() != reflect.Struct || isSpecial(t) {
		return nil
	}
	all := fieldsOf(t)
	if i := slices.IndexFunc(all, func(f structField) bool { return f.name == name }); i >= 0 {
		return all[i].of
	}
	return nil
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// isSpecial reports whether a type has custom JSON encoding.
func isSpecial(t reflect.Type) bool {
	return t != objectMeta && reflect.PointerTo(t).Implements(unmarshaler)
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	objectMeta  = reflect.TypeFor[metav1.ObjectMeta]()
)
