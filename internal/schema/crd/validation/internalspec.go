package validation

import (
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// An internalSpec is a spec in the internal form of Kubernetes, which is the validated one: values
// common to all versions are at the top and not in the versions. Field paths in errors are those of
// this form: with one version, an error in its schema is in spec.validation.openAPIV3Schema.
type internalSpec struct {
	spec     *v1.CustomResourceDefinitionSpec
	shared   part
	versions []part
}

// A part has the fields that are at the top or in each version.
type part struct {
	schema       *v1.CustomResourceValidation
	subresources *v1.CustomResourceSubresources
	columns      []v1.CustomResourceColumnDefinition
	selectable   []v1.SelectableField
}

func newInternalSpec(spec *v1.CustomResourceDefinitionSpec) *internalSpec {
	s := &internalSpec{spec: spec, versions: make([]part, len(spec.Versions))}
	for i := range spec.Versions {
		v := &spec.Versions[i]
		s.versions[i] = part{v.Schema, v.Subresources, v.AdditionalPrinterColumns, v.SelectableFields}
	}
	share(s, func(p *part) **v1.CustomResourceValidation { return &p.schema })
	share(s, func(p *part) **v1.CustomResourceSubresources { return &p.subresources })
	share(s, func(p *part) *[]v1.CustomResourceColumnDefinition { return &p.columns })
	share(s, func(p *part) *[]v1.SelectableField { return &p.selectable })
	return s
}

// share moves a value common to all versions to the top.
func share[T any](s *internalSpec, of func(*part) *T) {
	if len(s.versions) == 0 {
		return
	}
	first := *of(&s.versions[0])
	for i := range s.versions[1:] {
		if !equality.Semantic.DeepEqual(*of(&s.versions[i+1]), first) {
			return
		}
	}
	*of(&s.shared) = first
	for i := range s.versions {
		var none T
		*of(&s.versions[i]) = none
	}
}

// schemaOf returns the schema of the first version with a name. A common schema applies to any
// version.
func (s *internalSpec) schemaOf(version string) (schema *v1.CustomResourceValidation, ok bool) {
	if !slices.ContainsFunc(s.versions, func(p part) bool { return p.schema != nil }) {
		return s.shared.schema, true
	}
	for i := range s.versions {
		if s.spec.Versions[i].Name == version {
			return s.versions[i].schema, true
		}
	}
	return nil, false
}

// statusOf reports whether a version has a status subresource.
func (s *internalSpec) statusOf(version int) bool {
	return hasStatus(s.shared.subresources) || hasStatus(s.versions[version].subresources)
}

// anyStatus reports whether any version has a status subresource.
func (s *internalSpec) anyStatus() bool {
	for i := range s.versions {
		if s.statusOf(i) {
			return true
		}
	}
	return hasStatus(s.shared.subresources)
}

func hasStatus(s *v1.CustomResourceSubresources) bool { return s != nil && s.Status != nil }

func (p *part) hasSchema() bool { return p.schema != nil && p.schema.OpenAPIV3Schema != nil }

// hasDefaults reports whether any schema has a default.
func (s *internalSpec) hasDefaults() bool {
	return s.anySchema(func(p *v1.JSONSchemaProps) bool { return p.Default != nil })
}

// anySchema reports whether is returns true for any schema, or one inside it.
func (s *internalSpec) anySchema(is func(*v1.JSONSchemaProps) bool) bool {
	for i := range s.spec.Versions {
		schema := s.spec.Versions[i].Schema
		if schema != nil && !jsonschema.Walk(schema.OpenAPIV3Schema, func(p *v1.JSONSchemaProps) bool { return !is(p) }) {
			return true
		}
	}
	return false
}

// shownVersions are the versions of the internal form, as error messages show
// them.
func (s *internalSpec) shownVersions() any {
	if s.spec.Versions == nil {
		return jsonschema.GoNames{Value: s.spec.Versions}
	}
	out := make([]v1.CustomResourceDefinitionVersion, len(s.versions))
	for i := range out {
		out[i] = s.spec.Versions[i]
		p := &s.versions[i]
		out[i].Schema, out[i].Subresources = p.schema, p.subresources
		out[i].AdditionalPrinterColumns, out[i].SelectableFields = p.columns, p.selectable
	}
	return jsonschema.GoNames{Value: out}
}
