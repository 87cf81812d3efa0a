package model

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// Custom returns the published form of a custom resource. A schema that is not structural is published
// as an arbitrary object.
func Custom(props *apiextensionsv1.JSONSchemaProps, kind Kind) view.Model {
	m := models{schemas: map[string]*spec.Schema{}}
	objectMeta := refTo(m.add(reflect.TypeFor[metav1.ObjectMeta]()), docOf(reflect.TypeFor[metav1.PartialObjectMetadata](), "metadata"))
	listMeta := refTo(m.add(reflect.TypeFor[metav1.ListMeta]()), docOf(reflect.TypeFor[metav1.PartialObjectMetadataList](), "metadata"))

	root := primitive("object", "")
	if props != nil && publishable(props) {
		root = openAPI(props, objectMeta)
		setProperty(&root, "metadata", objectMeta)
		if !props.XEmbeddedResource { // an embedded object has its own descriptions of the two
			setProperty(&root, "apiVersion", typeMeta("apiVersion", ""))
			setProperty(&root, "kind", typeMeta("kind", ""))
		}
	}
	model := view.Model{Name: kind.model(kind.Kind), List: kind.model(kind.ListKind), Schemas: m.schemas, Keeps: kind.PreserveUnknownFields}
	list := listModel(kind, listMeta)
	for _, s := range []*spec.Schema{&root, &list} {
		if fields := selectable(kind.SelectableFields); fields != nil {
			s.AddExtension("x-kubernetes-selectable-fields", fields)
		}
	}
	markKind(&root, kind, kind.Kind)
	markKind(&list, kind, kind.ListKind)
	m.schemas[model.Name], m.schemas[model.List] = &root, &list
	return model
}

// publishable reports whether a schema can be published unchanged.
func publishable(props *apiextensionsv1.JSONSchemaProps) bool {
	known := jsonschema.Walk(props, func(p *apiextensionsv1.JSONSchemaProps) bool {
		return jsonschema.SupportedItself(p) == nil && (p.Type == "" || slices.Contains(jsonschema.Types, p.Type))
	})
	return known && len(jsonschema.CheckStructural(props, nil)) == 0
}

// model returns the name of the model of a kind of k's group and version: the
// group backwards, then the version and the kind.
func (k Kind) model(kind string) string {
	group := strings.Split(k.Group, ".")
	slices.Reverse(group)
	return strings.Join(group, ".") + "." + k.Version + "." + kind
}

func listModel(kind Kind, listMeta spec.Schema) spec.Schema {
	items := primitive("array", "")
	items.Description = "List of " + kind.Plural + ". More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
	items.Items = &spec.SchemaOrArray{Schema: spec.RefSchema(refPrefix + kind.model(kind.Kind))}

	list := primitive("object", "")
	list.Description = kind.ListKind + " is a list of " + kind.Kind
	list.Required = []string{"items"}
	setProperty(&list, "items", items)
	setProperty(&list, "metadata", listMeta)
	setProperty(&list, "apiVersion", typeMeta("apiVersion", ""))
	setProperty(&list, "kind", typeMeta("kind", ""))
	return list
}

func refTo(model, doc string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{
		Description: doc,
		AllOf:       []spec.Schema{*spec.RefSchema(refPrefix + model)},
	}}
}

func docOf(t reflect.Type, field string) string { return Docs(t)[field] }

// typeMeta returns the schema of apiVersion or kind; doc replaces the usual description.
func typeMeta(field, doc string) spec.Schema {
	if doc == "" {
		doc = docOf(reflect.TypeFor[metav1.TypeMeta](), field)
	}
	s := primitive("string", "")
	s.Description = doc
	return s
}

func setProperty(s *spec.Schema, name string, p spec.Schema) {
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	s.Properties[name] = p
}

func selectable(paths []string) []any {
	var out []any
	for _, p := range paths {
		out = append(out, map[string]any{"fieldPath": strings.TrimPrefix(p, ".")})
	}
	return out
}

// Descriptions of the type of an embedded object.
const (
	embeddedAPIVersion = "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
	embeddedKind       = "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
)

// openAPI returns the published form of a structural schema.
func openAPI(props *apiextensionsv1.JSONSchemaProps, objectMeta spec.Schema) spec.Schema {
	s := values(props)
	convert := func(p *apiextensionsv1.JSONSchemaProps) spec.Schema { return openAPI(p, objectMeta) }
	below(&s, props, convert)
	if props.XIntOrString {
		unfoldIntOrString(&s, props)
	}
	if props.XEmbeddedResource {
		setProperty(&s, "apiVersion", typeMeta("apiVersion", embeddedAPIVersion))
		setProperty(&s, "kind", typeMeta("kind", embeddedKind))
		setProperty(&s, "metadata", objectMeta)
		for _, name := range []string{"kind", "apiVersion"} {
			if !slices.Contains(s.Required, name) {
				s.Required = append(slices.Clip(s.Required), name)
			}
		}
	}
	return s
}

// below converts the schemas of the values inside one of props.
func below(s *spec.Schema, props *apiextensionsv1.JSONSchemaProps, convert func(*apiextensionsv1.JSONSchemaProps) spec.Schema) {
	if props.Items != nil && props.Items.Schema != nil {
		items := convert(props.Items.Schema)
		s.Items = &spec.SchemaOrArray{Schema: &items}
	}
	if a := props.AdditionalProperties; a != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: a.Allows}
		if a.Schema != nil {
			schema := convert(a.Schema)
			s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &schema}
		}
	}
	if len(props.Properties) > 0 {
		s.Properties = make(map[string]spec.Schema, len(props.Properties))
		for name := range props.Properties {
			p := props.Properties[name]
			s.Properties[name] = convert(&p)
		}
	}
}

// nested converts a schema under a junctor (allOf, anyOf, oneOf, not).
func nested(props *apiextensionsv1.JSONSchemaProps) spec.Schema {
	s := values(props)
	below(&s, props, nested)
	s.AdditionalProperties = nil // it is not published there
	return s
}

func nestedList(list []apiextensionsv1.JSONSchemaProps) []spec.Schema {
	var out []spec.Schema
	for i := range list {
		out = append(out, nested(&list[i]))
	}
	return out
}

// values converts the value validations of a schema, without those of nested values.
func values(p *apiextensionsv1.JSONSchemaProps) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{
		Description: p.Description, Title: p.Title, Nullable: p.Nullable, Default: jsonschema.Decode(p.Default),
		Format: p.Format, Pattern: p.Pattern, UniqueItems: p.UniqueItems, MultipleOf: p.MultipleOf,
		Maximum: p.Maximum, ExclusiveMaximum: p.ExclusiveMaximum, Minimum: p.Minimum, ExclusiveMinimum: p.ExclusiveMinimum,
		MaxLength: p.MaxLength, MinLength: p.MinLength, MaxItems: p.MaxItems, MinItems: p.MinItems,
		MaxProperties: p.MaxProperties, MinProperties: p.MinProperties, Required: p.Required,
		AllOf: nestedList(p.AllOf), AnyOf: nestedList(p.AnyOf), OneOf: nestedList(p.OneOf),
	}}
	if p.Type != "" {
		s.Type = spec.StringOrArray{p.Type}
	}
	s.Example = jsonschema.Decode(p.Example)
	if p.ExternalDocs != nil {
		s.ExternalDocs = &spec.ExternalDocumentation{Description: p.ExternalDocs.Description, URL: p.ExternalDocs.URL}
	}
	for i := range p.Enum {
		s.Enum = append(s.Enum, jsonschema.Decode(&p.Enum[i]))
	}
	if p.Not != nil {
		not := nested(p.Not)
		s.Not = &not
	}
	maps.Copy(extensions(&s), customExtensions(p))
	return s
}

func extensions(s *spec.Schema) spec.Extensions {
	if s.Extensions == nil {
		s.Extensions = spec.Extensions{}
	}
	return s.Extensions
}

func customExtensions(p *apiextensionsv1.JSONSchemaProps) map[string]any {
	x := map[string]any{}
	if p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields {
		x["x-kubernetes-preserve-unknown-fields"] = true
	}
	if p.XEmbeddedResource {
		x["x-kubernetes-embedded-resource"] = true
	}
	if p.XIntOrString {
		x["x-kubernetes-int-or-string"] = true
	}
	if len(p.XListMapKeys) > 0 {
		x["x-kubernetes-list-map-keys"] = p.XListMapKeys
	}
	if p.XListType != nil {
		x["x-kubernetes-list-type"] = *p.XListType
	}
	if p.XMapType != nil {
		x["x-kubernetes-map-type"] = *p.XMapType
	}
	if len(p.XValidations) > 0 {
		x["x-kubernetes-validations"] = p.XValidations
	}
	return x
}

// unfoldIntOrString states the two types of an int-or-string where the schema
// does not do so itself.
func unfoldIntOrString(s *spec.Schema, props *apiextensionsv1.JSONSchemaProps) {
	if jsonschema.IsIntOrString(props.AnyOf) || len(props.AllOf) > 0 && jsonschema.IsIntOrString(props.AllOf[0].AnyOf) {
		return
	}
	either := []spec.Schema{primitive("integer", ""), primitive("string", "")}
	if s.AnyOf == nil {
		s.AnyOf = either
		return
	}
	s.AllOf = append([]spec.Schema{{SchemaProps: spec.SchemaProps{AnyOf: either}}}, s.AllOf...)
}
