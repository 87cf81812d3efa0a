// Package jsonschema reads the schemas in CustomResourceDefinitions: it walks them, follows
// paths through them, and decides which are structural.
//
// It knows JSONSchemaProps, the type of the API. Package structural compiles schemas, and
// package model publishes them.
package jsonschema

import (
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Types are the types a value may have.
var Types = []string{"array", "boolean", "integer", "number", "object", "string"}

// IsCommon reports whether every object has a field.
func IsCommon(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// Items returns the schema of the items of a list, or nil.
func Items(p *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if p == nil || p.Items == nil {
		return nil
	}
	return p.Items.Schema
}

// Decode returns a value that a schema holds, a default for example: nil where
// there is none.
func Decode(j *apiextensionsv1.JSON) any {
	if j == nil {
		return nil
	}
	var v any
	if err := utiljson.Unmarshal(j.Raw, &v); err != nil {
		return nil
	}
	return v
}

// IsIntOrString reports whether an anyOf is exactly integer or string.
func IsIntOrString(anyOf []apiextensionsv1.JSONSchemaProps) bool {
	return len(anyOf) == 2 &&
		reflect.DeepEqual(anyOf[0], apiextensionsv1.JSONSchemaProps{Type: "integer"}) &&
		reflect.DeepEqual(anyOf[1], apiextensionsv1.JSONSchemaProps{Type: "string"})
}

func preserves(p *apiextensionsv1.JSONSchemaProps) bool {
	return p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
}

func propertyNames[M ~map[string]V, V any](m M) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
