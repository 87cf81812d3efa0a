package openapi

import (
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/schemamutation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/model"
)

// model returns the model of a version, of a built-in kind if typed.
func (s *shared) model(v *resource.Version, typed bool) view.Model {
	m := v.Schema.Model()
	if !typed || !s.noEnums {
		return m
	}
	walker := schemamutation.Walker{SchemaCallback: withoutEnum, RefCallback: schemamutation.RefCallbackNoop}
	m.Schemas = maps.Clone(m.Schemas)
	for name, published := range m.Schemas {
		m.Schemas[name] = walker.WalkSchema(published)
	}
	return m
}

// withoutEnum returns a schema without the values of an enum, and without their descriptions.
func withoutEnum(in *spec.Schema) *spec.Schema {
	description, _, listed := strings.Cut(in.Description, model.EnumHeader)
	if len(in.Enum) == 0 && !listed {
		return in
	}
	out := *in
	out.Enum, out.Description = nil, strings.TrimSpace(description)
	return &out
}
