package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Match is a definition that matches a search.
type Match struct {
	Entry   string `json:"entry"`
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
	// Fields are the fields whose path or description matches.
	Fields []Field `json:"fields,omitempty"`
}

// A Field is a field of a schema.
type Field struct {
	Path        string `json:"path"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
}

// Search finds the definitions with a word in their group, kind or other names, and those with
// fields that have it in their path or description. Upper and lower case do not differ. The fields are those
// of the storage version.
func (c *Catalog) Search(word string) ([]Match, error) {
	entries, err := c.Entries()
	if err != nil {
		return nil, err
	}
	word = strings.ToLower(word)
	var all []Match
	for i := range entries {
		for j := range entries[i].Definitions {
			data, err := c.read(&entries[i], &entries[i].Definitions[j])
			if err != nil {
				return nil, err
			}
			var d v1.CustomResourceDefinition
			if err := json.Unmarshal(data, &d); err != nil {
				return nil, fmt.Errorf("%s of the catalog entry %s: %w", entries[i].Definitions[j].Name, entries[i].Name, err)
			}
			if m, ok := match(&d, word); ok {
				m.Entry = entries[i].Name
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// match searches one definition.
func match(d *v1.CustomResourceDefinition, word string) (Match, bool) {
	m := Match{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if !v.Storage {
			continue
		}
		m.Version = v.Name
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			m.fields(v.Schema.OpenAPIV3Schema, "", word)
		}
	}
	found := slices.ContainsFunc(append([]string{d.Spec.Group, d.Spec.Names.Kind, d.Spec.Names.Plural}, d.Spec.Names.ShortNames...),
		func(name string) bool { return strings.Contains(strings.ToLower(name), word) })
	return m, found || len(m.Fields) > 0
}

// fields collects the matching fields below a schema. A path matches by its last name, or by the
// whole word with dots.
func (m *Match) fields(s *v1.JSONSchemaProps, path, word string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		inPath := strings.Contains(strings.ToLower(name), word) || strings.Contains(word, ".") && strings.HasSuffix(strings.ToLower(at), word)
		if path+name != "kind" && path+name != "apiVersion" && (inPath || strings.Contains(strings.ToLower(field.Description), word)) {
			m.Fields = append(m.Fields, Field{Path: at, Type: field.Type, Description: field.Description})
		}
		m.fields(&field, at, word)
	}
	if s.Items != nil && s.Items.Schema != nil {
		m.fields(s.Items.Schema, path+"[]", word)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		m.fields(s.AdditionalProperties.Schema, path+"{}", word)
	}
}
