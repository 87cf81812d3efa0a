package jsonschema

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Walk calls visit for a schema and all inside it, also in invalid places, until visit returns false.
func Walk(p *apiextensionsv1.JSONSchemaProps, visit func(*apiextensionsv1.JSONSchemaProps) bool) bool {
	if p == nil {
		return true
	}
	if !visit(p) || !Walk(p.Not, visit) {
		return false
	}
	lists := [][]apiextensionsv1.JSONSchemaProps{p.AllOf, p.AnyOf, p.OneOf}
	if p.Items != nil {
		if !Walk(p.Items.Schema, visit) {
			return false
		}
		lists = append(lists, p.Items.JSONSchemas)
	}
	for _, list := range lists {
		for i := range list {
			if !Walk(&list[i], visit) {
				return false
			}
		}
	}
	for _, other := range []*apiextensionsv1.JSONSchemaPropsOrBool{p.AdditionalProperties, p.AdditionalItems} {
		if other != nil && !Walk(other.Schema, visit) {
			return false
		}
	}
	for _, dependency := range p.Dependencies {
		if !Walk(dependency.Schema, visit) {
			return false
		}
	}
	for _, named := range []map[string]apiextensionsv1.JSONSchemaProps{p.Properties, p.PatternProperties, p.Definitions} {
		for _, name := range propertyNames(named) {
			if sub := named[name]; !Walk(&sub, visit) {
				return false
			}
		}
	}
	return true
}

// Supported returns what in a schema, or in one inside it, is part of JSON schema
// and cannot be compiled, and nil if all can.
func Supported(props *apiextensionsv1.JSONSchemaProps) error {
	var err error
	Walk(props, func(p *apiextensionsv1.JSONSchemaProps) bool {
		err = SupportedItself(p)
		return err == nil
	})
	return err
}

// SupportedItself is Supported for a schema without nested ones.
func SupportedItself(props *apiextensionsv1.JSONSchemaProps) error {
	found := ""
	switch {
	case props.ID != "":
		found = "id"
	case props.Schema != "":
		found = "schema"
	case props.Ref != nil && *props.Ref != "":
		found = "$ref"
	case len(props.PatternProperties) > 0:
		found = "patternProperties"
	case len(props.Dependencies) > 0:
		found = "dependencies"
	case props.AdditionalItems != nil:
		found = "additionalItems"
	case len(props.Definitions) > 0:
		found = "definitions"
	case props.XPreserveUnknownFields != nil && !*props.XPreserveUnknownFields:
		return fmt.Errorf("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")
	case props.Items != nil && len(props.Items.JSONSchemas) > 0:
		return fmt.Errorf("OpenAPIV3Schema 'items' must be a schema, but is an array")
	default:
		return nil
	}
	return fmt.Errorf("OpenAPIV3Schema '%s' is not supported", found)
}
