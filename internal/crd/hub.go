package crd

import (
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// A hub is a spec in the form in which Kubernetes validates it: what all versions
// say alike is said once, at the top, and not by the versions. Field paths in
// errors are those of this form: with one version, a mistake in its schema is in
// spec.validation.openAPIV3Schema.
type hub struct {
	spec     *v1.CustomResourceDefinitionSpec
	shared   part
	versions []part
}

// A part is what is said once or by each version.
type part struct {
	schema       *v1.CustomResourceValidation
	subresources *v1.CustomResourceSubresources
	columns      []v1.CustomResourceColumnDefinition
	selectable   []v1.SelectableField
}

func newHub(spec *v1.CustomResourceDefinitionSpec) *hub {
	h := &hub{spec: spec, versions: make([]part, len(spec.Versions))}
	for i := range spec.Versions {
		v := &spec.Versions[i]
		h.versions[i] = part{v.Schema, v.Subresources, v.AdditionalPrinterColumns, v.SelectableFields}
	}
	share(h, func(p *part) **v1.CustomResourceValidation { return &p.schema })
	share(h, func(p *part) **v1.CustomResourceSubresources { return &p.subresources })
	share(h, func(p *part) *[]v1.CustomResourceColumnDefinition { return &p.columns })
	share(h, func(p *part) *[]v1.SelectableField { return &p.selectable })
	return h
}

// share moves what all versions say alike to the top.
func share[T any](h *hub, of func(*part) *T) {
	if len(h.versions) == 0 {
		return
	}
	first := *of(&h.versions[0])
	for i := range h.versions[1:] {
		if !equality.Semantic.DeepEqual(*of(&h.versions[i+1]), first) {
			return
		}
	}
	*of(&h.shared) = first
	for i := range h.versions {
		var none T
		*of(&h.versions[i]) = none
	}
}

// schemaOf returns the schema of the first version of a name. One that all share
// is that of any version.
func (h *hub) schemaOf(version string) (s *v1.CustomResourceValidation, ok bool) {
	if !slices.ContainsFunc(h.versions, func(p part) bool { return p.schema != nil }) {
		return h.shared.schema, true
	}
	for i := range h.versions {
		if h.spec.Versions[i].Name == version {
			return h.versions[i].schema, true
		}
	}
	return nil, false
}

// statusOf reports whether a version has a status subresource.
func (h *hub) statusOf(version int) bool {
	return hasStatus(h.shared.subresources) || hasStatus(h.versions[version].subresources)
}

// anyStatus reports whether any version has a status subresource.
func (h *hub) anyStatus() bool {
	for i := range h.versions {
		if h.statusOf(i) {
			return true
		}
	}
	return hasStatus(h.shared.subresources)
}

func hasStatus(s *v1.CustomResourceSubresources) bool { return s != nil && s.Status != nil }

func (p *part) hasSchema() bool { return p.schema != nil && p.schema.OpenAPIV3Schema != nil }

// hasDefaults reports whether any schema has a default.
func (h *hub) hasDefaults() bool {
	return h.anySchema(func(p *v1.JSONSchemaProps) bool { return p.Default != nil })
}

// anySchema reports whether is says so of any schema, or of one inside it.
func (h *hub) anySchema(is func(*v1.JSONSchemaProps) bool) bool {
	for i := range h.spec.Versions {
		s := h.spec.Versions[i].Schema
		if s != nil && !jsonschema.Walk(s.OpenAPIV3Schema, func(p *v1.JSONSchemaProps) bool { return !is(p) }) {
			return true
		}
	}
	return false
}

// shownVersions are the versions of a spec in the form of a hub, as error messages
// show them.
func (h *hub) shownVersions() any {
	if h.spec.Versions == nil {
		return jsonschema.GoNames{Value: h.spec.Versions}
	}
	out := make([]v1.CustomResourceDefinitionVersion, len(h.versions))
	for i := range out {
		out[i] = h.spec.Versions[i]
		p := &h.versions[i]
		out[i].Schema, out[i].Subresources = p.schema, p.subresources
		out[i].AdditionalPrinterColumns, out[i].SelectableFields = p.columns, p.selectable
	}
	return jsonschema.GoNames{Value: out}
}
