package crd

import (
	"reflect"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/model"
)

// typeSchema is the schema of CustomResourceDefinition: that of its Go type, with
// defaults.
type typeSchema struct{ *schema.Schema }

func newTypeSchema() typeSchema {
	return typeSchema{schema.FromType(reflect.TypeFor[v1.CustomResourceDefinition](), model.TypeOptions{
		Kind: model.Kind{
			Group: Group, Version: "v1", Kind: Kind, ListKind: Kind + "List", Plural: Plural,
		},
		List:  reflect.TypeFor[v1.CustomResourceDefinitionList](),
		Marks: marks,
	})}
}

// Complete decodes and defaults a CustomResourceDefinition of a client.
func (s typeSchema) Complete(obj map[string]any) (map[string]any, []string, error) {
	obj, unknown, err := s.Schema.Complete(obj)
	if err == nil {
		setDefaults(obj)
	}
	return obj, unknown, err
}

// Default fills in the defaults of a CustomResourceDefinition.
func (s typeSchema) Default(obj map[string]any) { setDefaults(object.Tree(obj)) }

// marks returns the markers in the source of the Go types, which reflection cannot see.
func marks() gotype.Marks {
	const at = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
	atomic := gotype.Mark{List: "atomic"}
	optional := gotype.Mark{Optional: true}
	return describe(gotype.Marks{
		at + "CustomResourceDefinitionNames": {"shortNames": atomic, "categories": atomic},
		at + "CustomResourceDefinitionSpec":  {"versions": atomic},
		at + "CustomResourceDefinitionVersion": {
			"additionalPrinterColumns": atomic, "selectableFields": atomic,
		},
		at + "CustomResourceDefinitionStatus": {
			"conditions":     {List: "map", Keys: []string{"type"}, Optional: true},
			"acceptedNames":  optional,
			"storedVersions": {List: "atomic", Optional: true},
		},
		at + "WebhookConversion": {"conversionReviewVersions": atomic},
		at + "JSONSchemaProps": {
			"allOf": atomic, "anyOf": atomic, "oneOf": atomic, "enum": atomic, "required": atomic,
			"x-kubernetes-list-map-keys": atomic,
			"x-kubernetes-validations":   {List: "map", Keys: []string{"rule"}},
		},
		at + "ValidationRule": {"reason": {Enum: []string{
			string(v1.FieldValueDuplicate), string(v1.FieldValueForbidden),
			string(v1.FieldValueInvalid), string(v1.FieldValueRequired),
		}}},
	}, at)
}
