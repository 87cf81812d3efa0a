package infer

import (
	"cmp"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/order"
)

// build builds a version from its samples.
func (b *builder) build(root *place) v1.CustomResourceDefinitionVersion {
	s := b.root(root)
	v := v1.CustomResourceDefinitionVersion{Name: b.version, Served: true, Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: &s}}
	Complete(&v)
	v.AdditionalPrinterColumns = b.columns(root, &s)
	return v
}

// root is the schema of whole objects.
func (b *builder) root(p *place) v1.JSONSchemaProps {
	s := v1.JSONSchemaProps{Type: string(ofObject)}
	f := &p.object
	if f.values != nil {
		b.note("", "objects have too many different fields to list: all fields are preserved")
		s.XPreserveUnknownFields = new(true)
		return s
	}
	for _, name := range sorted(f.byName) {
		below := f.byName[name]
		if s.Properties == nil {
			s.Properties = map[string]v1.JSONSchemaProps{}
		}
		s.Properties[name] = b.schema(path(name), name, below)
		// The server drops the status of a client's write: it cannot be required.
		if name != "status" && below.seen == f.seen && b.enough(p) && telling(s.Properties[name]) {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// Complete adds the subresources for which the schema of a version has fields.
func Complete(v *v1.CustomResourceDefinitionVersion) {
	root := v.Schema.OpenAPIV3Schema
	status, ok := root.Properties["status"]
	if !ok || status.Type != "object" {
		return
	}
	v.Subresources = &v1.CustomResourceSubresources{Status: &v1.CustomResourceSubresourceStatus{}}
	spec := root.Properties["spec"]
	if spec.Properties["replicas"].Type != "integer" || status.Properties["replicas"].Type != "integer" {
		return
	}
	v.Subresources.Scale = &v1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}
	for _, name := range []string{"selector", "labelSelector"} {
		if status.Properties[name].Type == "string" {
			v.Subresources.Scale.LabelSelectorPath = new(".status." + name)
			return
		}
	}
}

// Maximum number of columns: of the spec, and in total without Age.
const (
	specColumns = 3
	allColumns  = 5
)

// columns returns columns for kubectl get: fields of the spec that differ between samples, and the
// state of the object.
func (b *builder) columns(root *place, s *v1.JSONSchemaProps) []v1.CustomResourceColumnDefinition {
	all := specColumnsOf(root, s)
	status := s.Properties["status"]
	for _, name := range []string{"phase", "state"} {
		if p := status.Properties[name]; p.Type == "string" {
			all = append(all, column(name, "string", ".status."+name))
			break
		}
	}
	if p := conditionsIn(root); p != nil {
		for _, name := range []string{"Ready", "Available", "Healthy", "Succeeded", "Complete", "Programmed", "Accepted", "Synced"} {
			if p.text.values[name] > 0 {
				all = append(all, v1.CustomResourceColumnDefinition{Name: name, Type: "string", JSONPath: `.status.conditions[?(@.type=="` + name + `")].status`})
				break
			}
		}
	}
	if len(all) == 0 {
		return nil // the server shows the age itself
	}
	return append(all[:min(len(all), allColumns)], v1.CustomResourceColumnDefinition{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"})
}

// conditionsIn is the types of the conditions that objects have, or nil.
func conditionsIn(root *place) *place {
	status := root.object.byName["status"]
	if status == nil || status.object.byName["conditions"] == nil {
		return nil
	}
	if items := status.object.byName["conditions"].list.each(); conditionsOf("conditions", items) {
		return items.object.byName["type"]
	}
	return nil
}

func column(name, typ, path string) v1.CustomResourceColumnDefinition {
	return v1.CustomResourceColumnDefinition{Name: strings.ToUpper(name[:1]) + name[1:], Type: typ, JSONPath: path}
}

// specColumnsOf returns the distinctive scalars of the spec: most objects have them, with different
// values.
func specColumnsOf(root *place, s *v1.JSONSchemaProps) (all []v1.CustomResourceColumnDefinition) {
	spec := root.object.byName["spec"]
	if spec == nil || !spec.is(ofObject) {
		return nil
	}
	type candidate struct {
		name, typ string
		worth     int
	}
	var candidates []candidate
	schemas := s.Properties["spec"].Properties
	for name, schema := range schemas {
		p := spec.object.byName[name]
		if p == nil || p.seen*2 < spec.object.seen || !fieldName.MatchString(name) || name == "name" || name == "age" {
			continue // or a column of this name is there already
		}
		switch {
		case schema.Type == "integer" && name == "replicas":
			candidates = append(candidates, candidate{name, "integer", 3})
		case len(schema.Enum) > 0:
			candidates = append(candidates, candidate{name, "string", 2})
		case schema.Type == "string" && p.text.is(short) && (p.text.overflowed || len(p.text.values) > 1):
			candidates = append(candidates, candidate{name, "string", 1})
		}
	}
	order.Stable(candidates, func(a, b candidate) int {
		return cmp.Or(-cmp.Compare(a.worth, b.worth), cmp.Compare(a.name, b.name))
	})
	for _, c := range candidates[:min(len(candidates), specColumns)] {
		all = append(all, column(c.name, c.typ, ".spec."+c.name))
	}
	return all
}
