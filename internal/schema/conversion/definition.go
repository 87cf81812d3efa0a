package conversion

import (
	"encoding/json"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
)

// Resource is that of CRDConversionConfigs.
var Resource = schema.GroupResource{Group: "terasky.com", Resource: "crdconversionconfigs"}

// IsConfig reports whether an object is a CRDConversionConfig.
func IsConfig(t object.Tree) bool {
	gv, err := schema.ParseGroupVersion(object.APIVersion(t))
	return err == nil && gv.Group == Resource.Group && object.Kind(t) == ConfigKind
}

// ConfigKind is the kind of CRDConversionConfigs.
const ConfigKind = "CRDConversionConfig"

// Schemas returns the schema of a version as JSON, or nil for one without a schema.
type Schemas func(version string) ([]byte, error)

// Annotation of a CustomResourceDefinition has the rules of its conversion: the spec of a
// CRDConversionConfig, in JSON or YAML. With rules, spec.conversion is not used.
const Annotation = "anykind.dev/conversion"

// AnnotationPath is the path of the annotation in errors.
func AnnotationPath() *field.Path { return field.NewPath("metadata", "annotations").Key(Annotation) }

// Written returns the rules in the annotation of a CustomResourceDefinition. They are nil if there are none, or
// if the report has the error of parsing them.
func Written(crd *v1.CustomResourceDefinition) (*Rules, *Report) {
	text, ok := crd.Annotations[Annotation]
	if !ok {
		return nil, &Report{}
	}
	rules, err := ParseText(text)
	if err != nil {
		return nil, &Report{Errors: field.ErrorList{field.Invalid(AnnotationPath(), text, err.Error())}}
	}
	return rules, &Report{}
}

// Of compiles the rules in the annotation of a CustomResourceDefinition. It returns nil without errors for
// one without rules.
func Of(crd *v1.CustomResourceDefinition, schemas Schemas) (*Converter, *Report) {
	rules, report := Written(crd)
	if rules == nil {
		return nil, report
	}
	return rules.For(crd, schemas, AnnotationPath())
}

// For compiles rules for a CustomResourceDefinition. at is the path of the rules.
func (r *Rules) For(crd *v1.CustomResourceDefinition, schemas Schemas, at *field.Path) (*Converter, *Report) {
	all, err := decodeSchemas(crd, schemas)
	if err != nil {
		return nil, &Report{Errors: field.ErrorList{field.InternalError(at, err)}}
	}
	return Compile(r, crd.Spec.Group, all, at)
}

// decodeSchemas returns the schemas by version. A version without one keeps all fields.
func decodeSchemas(crd *v1.CustomResourceDefinition, schemas Schemas) (map[string]*v1.JSONSchemaProps, error) {
	all := map[string]*v1.JSONSchemaProps{}
	for i := range crd.Spec.Versions {
		name := crd.Spec.Versions[i].Name
		data, err := schemas(name)
		props := &v1.JSONSchemaProps{}
		if err == nil && data != nil {
			err = json.Unmarshal(data, props)
		}
		if err != nil {
			return nil, err
		}
		all[name] = props
	}
	return all, nil
}

// SchemasOf returns the schemas of a CustomResourceDefinition that has them.
func SchemasOf(crd *v1.CustomResourceDefinition) Schemas {
	return func(version string) ([]byte, error) {
		for i := range crd.Spec.Versions {
			if v := &crd.Spec.Versions[i]; v.Name == version && v.Schema != nil {
				return json.Marshal(v.Schema.OpenAPIV3Schema)
			}
		}
		return nil, nil
	}
}
