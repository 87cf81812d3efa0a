package openapi

import (
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

const v2RefPrefix = "#/definitions/"

// OpenAPI v2 omits the parts of a schema that it cannot express, or that its clients misread:
// defaults, allOf, anyOf, oneOf, not and nullable, and the validations of a value that is
// nullable or preserves unknown fields.

// v2Native returns the definition of a schema of a Go type.
func v2Native(s *spec.Schema) fields {
	f := v2Values(s)
	switch {
	case s.Ref.String() != "":
		f["$ref"] = v2Ref(s)
	case len(s.AllOf) == 1: // in OpenAPI v3, a reference with a description
		f["$ref"] = v2Ref(&s.AllOf[0])
	case len(s.OneOf) > 0: // int-or-string, written as a string
		f["type"] = "string"
	}
	v2Inside(f, s, v2Native)
	return f
}

// v2Custom returns the definition of a custom resource or its list.
func v2Custom(s *spec.Schema) fields {
	if keeps, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); keeps {
		return v2Open(s)
	}
	return v2Place(s)
}

// v2Open returns the definition of a custom resource that preserves unknown fields. A client
// would reject fields that are not listed, so it lists none.
func v2Open(s *spec.Schema) fields {
	bare := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	for _, name := range []string{"x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields"} {
		if v, ok := s.Extensions[name]; ok {
			bare.AddExtension(name, v)
		}
	}
	return v2Values(bare)
}

// v2Place returns the schema of a value inside a custom resource.
func v2Place(s *spec.Schema) fields {
	if len(s.AllOf) == 1 && s.AllOf[0].Ref.String() != "" {
		return fields{"$ref": v2Ref(&s.AllOf[0]), "description": s.Description}
	}
	f := v2Values(s)
	if s.Ref.String() != "" {
		f["$ref"] = v2Ref(s)
	}
	keeps, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource")
	shown := *s
	switch {
	case keeps:
		shown.Items, shown.Properties = nil, nil
		if s.Nullable || s.Type.Contains("object") {
			delete(f, "type")
		}
		if embedded {
			shown.Required = withoutKind(s.Required)
		}
	case s.Nullable:
		delete(f, "type")
		shown.Items, shown.Properties = nil, nil
		if embedded {
			shown.Properties = identity(s.Properties)
		}
	}
	if s.Type.Contains("array") && shown.Items == nil {
		delete(f, "type")
	}
	delete(f, "required")
	if required := v2Required(&shown); len(required) > 0 {
		f["required"] = required
	}
	v2Inside(f, &shown, v2Place)
	return f
}

// v2Required returns the required fields, without nullable ones.
func v2Required(s *spec.Schema) []string {
	if a := s.AdditionalProperties; a != nil && a.Schema != nil && a.Schema.Nullable {
		return nil
	}
	var out []string
	for _, name := range s.Required {
		if !s.Properties[name].Nullable {
			out = append(out, name)
		}
	}
	return out
}

// withoutKind removes the fields that every embedded object requires. They are the last ones.
func withoutKind(required []string) []string {
	for _, name := range []string{"apiVersion", "kind"} {
		if n := len(required); n > 0 && required[n-1] == name {
			required = required[:n-1]
		}
	}
	return required
}

// identity returns the properties that identify an object.
func identity(properties map[string]spec.Schema) map[string]spec.Schema {
	out := map[string]spec.Schema{}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if p, ok := properties[name]; ok {
			out[name] = p
		}
	}
	return out
}

func v2Ref(s *spec.Schema) string {
	return v2RefPrefix + strings.TrimPrefix(s.Ref.String(), refPrefix)
}

// v2Inside adds the schemas of the values inside s.
func v2Inside(f fields, s *spec.Schema, convert func(*spec.Schema) fields) {
	if s.Items != nil && s.Items.Schema != nil {
		f["items"] = convert(s.Items.Schema)
	}
	if a := s.AdditionalProperties; a != nil {
		f["additionalProperties"] = a.Allows
		if a.Schema != nil {
			f["additionalProperties"] = convert(a.Schema)
		}
	}
	if len(s.Properties) > 0 {
		properties := make(fields, len(s.Properties))
		for name, p := range s.Properties {
			properties[name] = convert(&p)
		}
		f["properties"] = properties
	}
}

// v2Values returns the schema of a value without those of the values inside it.
func v2Values(s *spec.Schema) fields {
	f := fields{}
	set(f, "description", s.Description)
	set(f, "title", s.Title)
	set(f, "format", s.Format)
	set(f, "pattern", s.Pattern)
	set(f, "exclusiveMaximum", s.ExclusiveMaximum)
	set(f, "exclusiveMinimum", s.ExclusiveMinimum)
	set(f, "uniqueItems", s.UniqueItems)
	setTo(f, "multipleOf", s.MultipleOf)
	setTo(f, "maximum", s.Maximum)
	setTo(f, "minimum", s.Minimum)
	setTo(f, "maxLength", s.MaxLength)
	setTo(f, "minLength", s.MinLength)
	setTo(f, "maxItems", s.MaxItems)
	setTo(f, "minItems", s.MinItems)
	setTo(f, "maxProperties", s.MaxProperties)
	setTo(f, "minProperties", s.MinProperties)
	if len(s.Type) == 1 {
		f["type"] = s.Type[0]
	}
	if len(s.Required) > 0 {
		f["required"] = s.Required
	}
	if len(s.Enum) > 0 {
		values := make([]raw, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = encode(v)
		}
		f["enum"] = values
	}
	if s.Example != nil {
		switch example := encode(s.Example); string(example) {
		case `""`, `{}`, `[]`: // not a default
		default:
			f["example"] = raw(example)
		}
	}
	if d := s.ExternalDocs; d != nil {
		docs := fields{}
		set(docs, "description", d.Description)
		set(docs, "url", d.URL)
		f["externalDocs"] = docs
	}
	for name, v := range s.Extensions {
		switch v.(type) {
		case bool, string:
			f[name] = v
		default:
			f[name] = raw(encode(v))
		}
	}
	return f
}

func set[T comparable](f fields, name string, v T) {
	var zero T
	if v != zero {
		f[name] = v
	}
}

func setTo[T any](f fields, name string, v *T) {
	if v != nil {
		f[name] = *v
	}
}
