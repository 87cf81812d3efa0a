package model

import (
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/gotype"
)

const refPrefix = "#/components/schemas/"

// TypeOptions have the properties of a Go type that reflection cannot see.
type TypeOptions struct {
	Kind Kind
	// List is the Go type of a list of the kind, or nil.
	List reflect.Type
	// Package gives the types of a package the names and the documentation of another one, and its markers if it
	// has any.
	Package Renamed
	// Marks returns those of the type and of its referenced types, except metadata; nil for none.
	Marks func() gotype.Marks
}

// OfType returns the published form of a Go type and of all types that it refers to. The type may also
// be an argument or a result of operations, such as DeleteOptions and Status.
func OfType(t reflect.Type, o TypeOptions) view.Model {
	m := models{schemas: map[string]*spec.Schema{}, renamed: o.Package}
	if o.Marks != nil {
		m.marks = o.Marks()
		m.remarked = m.marks.HasPackage(o.Package.To)
	}
	model := view.Model{Name: m.add(gotype.Deref(t)), Schemas: m.schemas}
	if o.Kind.Kind == "" {
		return model
	}
	markKind(m.schemas[model.Name], o.Kind, o.Kind.Kind)
	if o.List != nil {
		model.List = m.add(gotype.Deref(o.List))
		markKind(m.schemas[model.List], o.Kind, o.Kind.Kind+"List")
	}
	return model
}

func markKind(s *spec.Schema, k Kind, kind string) {
	s.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
		"group": k.Group, "version": k.Version, "kind": kind,
	}})
}

// models collects the models of types.
type models struct {
	schemas map[string]*spec.Schema
	marks   gotype.Marks
	renamed Renamed
	// remarked is set if renamed types have the markers of the other package.
	remarked bool
}

// mark returns the markers of a field of a model.
func (m *models) mark(model, field string) gotype.Mark {
	if mark, ok := m.marks[model][field]; ok {
		return mark
	}
	return metaMarks[model][field]
}

// add adds the model of a named type if missing, and returns its name.
func (m *models) add(t reflect.Type) string {
	name := m.renamed.nameOf(t)
	if _, ok := m.schemas[name]; ok {
		return name
	}
	s := &spec.Schema{}
	m.schemas[name] = s // now, for a type may contain itself
	docs := m.renamed.docs(t)
	s.Description = docs[""]
	marked := gotype.NameOf(t.PkgPath(), t.Name())
	if m.remarked {
		marked = name
	}
	mark := m.mark(marked, "")
	if mark.Doc != "" {
		s.Description = mark.Doc
	}
	if mark.Map != "" {
		s.AddExtension("x-kubernetes-map-type", mark.Map)
	}
	if u := mark.Union; u != nil {
		fields := map[string]any{}
		for name, value := range u.Fields {
			fields[name] = value
		}
		union := map[string]any{"fields-to-discriminateBy": fields}
		if u.Discriminator != "" {
			union["discriminator"] = u.Discriminator
		}
		s.AddExtension("x-kubernetes-unions", []any{union})
	}
	if gv, err := schema.ParseGroupVersion(mark.Kind); err == nil && mark.Kind != "" {
		markKind(s, Kind{Group: gv.Group, Version: gv.Version}, t.Name())
	}
	if declared, ok := declaredType(t); ok {
		*s = withType(*s, declared)
		return name
	}
	s.Type = spec.StringOrArray{"object"}
	for f := range gotype.Fields(t) {
		m.property(s, marked, f, docs[f.JSONName])
	}
	return name
}

func (m *models) property(s *spec.Schema, model string, f gotype.Field, doc string) {
	mark := m.mark(model, f.JSONName)
	if mark.Doc != "" {
		doc = mark.Doc
	}
	p := m.schemaOf(f.Type)
	if p.Ref.String() != "" {
		p = spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{p}}}
	}
	p.Description = doc
	if f.Type.Kind() != reflect.Pointer {
		p.Default = zero(f.Type, f.OmitEmpty)
	}
	if mark.Default != nil {
		p.Default = mark.Default
	}
	if len(p.AllOf) == 1 && p.Default == nil && p.Description == "" {
		p = p.AllOf[0]
	}
	if len(mark.Enum) > 0 {
		p.Enum = anys(mark.Enum)
		p.Description = strings.TrimPrefix(p.Description+enumDoc(mark.Enum), "\n\n")
	}
	switch {
	case len(mark.Elements) == 0:
	case p.Items != nil:
		p.Items.Schema.Enum = anys(mark.Elements)
	default:
		p.AdditionalProperties.Schema.Enum = anys(mark.Elements)
	}
	extend(&p, f, mark)
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	s.Properties[f.JSONName] = p
	if !mark.Optional && (mark.Required || !f.OmitEmpty && !f.OmitZero) {
		s.Required = append(s.Required, f.JSONName)
	}
}

// extend adds the extensions of a field, for server-side apply and for strategic merge patches.
func extend(p *spec.Schema, f gotype.Field, mark gotype.Mark) {
	if mark.List != "" {
		p.AddExtension("x-kubernetes-list-type", mark.List)
	}
	if len(mark.Keys) > 0 {
		p.AddExtension("x-kubernetes-list-map-keys", anys(mark.Keys))
	}
	if mark.Map != "" {
		p.AddExtension("x-kubernetes-map-type", mark.Map)
	}
	if v := f.Tag.Get("patchStrategy"); v != "" {
		p.AddExtension("x-kubernetes-patch-strategy", v)
	}
	if v := f.Tag.Get("patchMergeKey"); v != "" {
		p.AddExtension("x-kubernetes-patch-merge-key", v)
	}
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// schemaOf returns the schema of a value of the type, with a reference where
// the type has a model of its own.
func (m *models) schemaOf(t reflect.Type) spec.Schema {
	t = gotype.Deref(t)
	if t == reflect.TypeFor[time.Time]() {
		return primitive("string", "date-time")
	}
	if _, ok := declaredType(t); ok || t.Kind() == reflect.Struct {
		return *spec.RefSchema(refPrefix + m.add(t))
	}
	switch t.Kind() {
	case reflect.String:
		return primitive("string", "")
	case reflect.Bool:
		return primitive("boolean", "")
	case reflect.Int64, reflect.Uint64:
		return primitive("integer", "int64")
	case reflect.Int, reflect.Int32, reflect.Int16, reflect.Uint, reflect.Uint32, reflect.Uint16:
		return primitive("integer", "int32")
	case reflect.Int8, reflect.Uint8:
		return primitive("integer", "byte")
	case reflect.Float64:
		return primitive("number", "double")
	case reflect.Float32:
		return primitive("number", "float")
	case reflect.Map:
		s := primitive("object", "")
		elem := m.schemaOf(t.Elem())
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &elem}
		return s
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return primitive("string", "byte")
		}
		s := primitive("array", "")
		elem := m.schemaOf(t.Elem())
		s.Items = &spec.SchemaOrArray{Schema: &elem}
		return s
	default:
		return primitive("object", "")
	}
}

func primitive(typ, format string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{typ}, Format: format}}
}

// zero returns the default that is published for a field that is not a pointer.
func zero(t reflect.Type, omitEmpty bool) any {
	switch t.Kind() {
	case reflect.Struct:
		if _, ok := declaredType(t); ok || gotype.ReadsItself(t) {
			return nil
		}
		return map[string]any{}
	case reflect.String:
		if !omitEmpty {
			return ""
		}
	case reflect.Bool:
		if !omitEmpty {
			return false
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		if !omitEmpty {
			return 0
		}
	}
	return nil
}

// A declared type defines its own published form.
type declared struct {
	types  []string
	format string
	oneOf  []string
}

func declaredType(t reflect.Type) (declared, bool) {
	v := reflect.Zero(t).Interface()
	d, ok := v.(interface{ OpenAPISchemaType() []string })
	if !ok {
		return declared{}, false
	}
	out := declared{types: d.OpenAPISchemaType()}
	if f, ok := v.(interface{ OpenAPISchemaFormat() string }); ok {
		out.format = f.OpenAPISchemaFormat()
	}
	if f, ok := v.(interface{ OpenAPIV3OneOfTypes() []string }); ok {
		out.oneOf = f.OpenAPIV3OneOfTypes()
	}
	return out, true
}

func withType(s spec.Schema, d declared) spec.Schema {
	s.Format = d.format
	if len(d.oneOf) == 0 {
		s.Type = d.types
		return s
	}
	for _, t := range d.oneOf {
		s.OneOf = append(s.OneOf, primitive(t, ""))
	}
	return s
}
