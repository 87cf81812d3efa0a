package generate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A Schema is the part of an OpenAPI schema that determines values.
type Schema struct {
	Ref          string             `json:"$ref"`
	AllOf        []*Schema          `json:"allOf"`
	Type         string             `json:"type"`
	Format       string             `json:"format"`
	Enum         []any              `json:"enum"`
	Required     []string           `json:"required"`
	Properties   map[string]*Schema `json:"properties"`
	Items        *Schema            `json:"items"`
	Additional   *Schema            `json:"additionalProperties"`
	Minimum      *float64           `json:"minimum"`
	Maximum      *float64           `json:"maximum"`
	MaxLength    *int               `json:"maxLength"`
	MaxItems     *int               `json:"maxItems"`
	IntOrString  bool               `json:"x-kubernetes-int-or-string"`
	Preserve     bool               `json:"x-kubernetes-preserve-unknown-fields"`
	ListType     string             `json:"x-kubernetes-list-type"`
	ListMapKeys  []string           `json:"x-kubernetes-list-map-keys"`
	Nullable     bool               `json:"nullable"`
	GroupVersion []struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`

	names []string // sorted names of the properties
}

// UnmarshalJSON decodes a boolean in place of a schema as a schema that allows everything.
func (s *Schema) UnmarshalJSON(data []byte) error {
	if text := string(data); text == "true" || text == "false" {
		return nil
	}
	type plain Schema
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	s.names = slices.Sorted(maps.Keys(s.Properties))
	return nil
}

// schemas are the schemas of a document, by name.
type schemas map[string]*Schema

// parseDocument returns the schemas of an OpenAPI v3 document.
func parseDocument(data []byte) (schemas, error) {
	var document struct {
		Components struct {
			Schemas schemas `json:"schemas"`
		} `json:"components"`
	}
	err := json.Unmarshal(data, &document)
	return document.Components.Schemas, err
}

// kind returns the schema of a kind with all references resolved, nil if it is missing.
func (all schemas) kind(group, version, kind string) *Schema {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, of := range all[name].GroupVersion {
			if of.Group == group && of.Version == version && of.Kind == kind {
				return all.resolve(all[name], nil)
			}
		}
	}
	return nil
}

// resolve replaces the references of a schema by their targets. A recursive reference becomes a schema
// that allows everything.
func (all schemas) resolve(s *Schema, within []*Schema) *Schema {
	if s == nil {
		return nil
	}
	at := s
	if s.Ref == "" && len(s.AllOf) == 1 {
		at = s.AllOf[0]
	}
	if at.Ref != "" {
		at = all[at.Ref[strings.LastIndex(at.Ref, "/")+1:]]
		if at == nil || slices.Contains(within, at) {
			return &Schema{Type: "object", Preserve: true}
		}
	}
	within = append(within[:len(within):len(within)], at)
	out := *at
	out.Properties = make(map[string]*Schema, len(at.Properties))
	for name, p := range at.Properties {
		out.Properties[name] = all.resolve(p, within)
	}
	out.Items, out.Additional = all.resolve(at.Items, within), all.resolve(at.Additional, within)
	return &out
}

// property returns the schema of a field, nil if unknown.
func (s *Schema) property(name string) *Schema {
	if s == nil {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	return s.Additional
}
