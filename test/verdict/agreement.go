package verdict

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Share counts the properties of two definitions: those in both, those only in the inferred one, and
// those only in the published one.
type Share struct{ Both, Ours, Theirs int }

func (s Share) String() string { return fmt.Sprintf("%d / %d / %d", s.Both, s.Ours, s.Theirs) }

func (s *Share) note(ours, theirs bool) {
	switch {
	case ours && theirs:
		s.Both++
	case ours:
		s.Ours++
	case theirs:
		s.Theirs++
	}
}

// An Agreement measures the similarity of definitions that are inferred from samples to published
// ones, for the fields in the samples.
type Agreement struct {
	Kinds, Samples  int
	Names           int // kinds with the same plural, singular and scope
	Fields, Types   int // all fields, and those with the same type
	Required, Enums Share
	Lists, Formats  Share // lists that are maps or sets; formats of strings
	differ          []string
}

const agreementHead = "| project | kinds | samples | names and scope | fields | same type | required | enums | list maps and sets | formats |\n" +
	"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"

func (a *Agreement) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %s | %s | %s | %s |\n", name, a.Kinds, a.Samples, a.Names, a.Fields, a.Types, a.Required, a.Enums, a.Lists, a.Formats)
}

func (a *Agreement) add(b *Agreement) {
	a.Kinds, a.Samples, a.Names, a.Fields, a.Types = a.Kinds+b.Kinds, a.Samples+b.Samples, a.Names+b.Names, a.Fields+b.Fields, a.Types+b.Types
	for what, s := range a.shares() {
		more := b.shares()[what]
		s.Both, s.Ours, s.Theirs = s.Both+more.Both, s.Ours+more.Ours, s.Theirs+more.Theirs
	}
}

// shares returns its parts that count shared properties.
func (a *Agreement) shares() map[string]*Share {
	return map[string]*Share{"required": &a.Required, "enums": &a.Enums, "lists": &a.Lists, "formats": &a.Formats}
}

// below returns the values of an agreement that are worse than a limit.
func (a *Agreement) below(floor *Agreement) (worse []string) {
	for what, n := range map[string][2]int{
		"kinds": {a.Kinds, floor.Kinds}, "samples": {a.Samples, floor.Samples}, "names and scope": {a.Names, floor.Names},
		"fields": {a.Fields, floor.Fields}, "same type": {a.Types, floor.Types},
	} {
		if n[0] < n[1] {
			worse = append(worse, fmt.Sprintf("%s: %d, want %d or more", what, n[0], n[1]))
		}
	}
	for what, s := range a.shares() {
		if f := floor.shares()[what]; s.Both < f.Both || s.Ours > f.Ours {
			worse = append(worse, fmt.Sprintf("%s: %s, want %d or more that both say, and %d or less that only the inferred one says", what, s, f.Both, f.Ours))
		}
	}
	slices.Sort(worse)
	return worse
}

// definition compares an inferred definition with the published one.
func (a *Agreement) definition(ours, theirs *v1.CustomResourceDefinition) {
	a.Kinds++
	if ours.Name == theirs.Name && ours.Spec.Scope == theirs.Spec.Scope && ours.Spec.Names.Singular == theirs.Spec.Names.Singular {
		a.Names++
	} else {
		a.differ = append(a.differ, fmt.Sprintf("%s %s: %s %s", ours.Name, ours.Spec.Scope, theirs.Name, theirs.Spec.Scope))
	}
	for i := range ours.Spec.Versions {
		v := &ours.Spec.Versions[i]
		for j := range theirs.Spec.Versions {
			if w := &theirs.Spec.Versions[j]; w.Name == v.Name {
				a.schema(ours.Name+" "+v.Name+" ", v.Schema.OpenAPIV3Schema, w.Schema.OpenAPIV3Schema)
			}
		}
	}
}

func typeOf(s *v1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "int-or-string"
	case s.XEmbeddedResource:
		return "resource"
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "map"
	case s.Type == "" || s.Type == "object" && len(s.Properties) == 0 && s.XPreserveUnknownFields != nil:
		return "anything"
	}
	return s.Type
}

// schema compares two schemas and their subschemas.
func (a *Agreement) schema(at string, ours, theirs *v1.JSONSchemaProps) {
	a.Fields++
	if typeOf(ours) != typeOf(theirs) {
		a.differ = append(a.differ, fmt.Sprintf("%s: type %s, published %s", at, typeOf(ours), typeOf(theirs)))
		return
	}
	a.Types++
	note := func(s *Share, what string, ours, theirs bool) {
		s.note(ours, theirs)
		if ours != theirs {
			a.differ = append(a.differ, fmt.Sprintf("%s: %s: ours %v, published %v", at, what, ours, theirs))
		}
	}
	note(&a.Enums, "enum", len(ours.Enum) > 0, len(theirs.Enum) > 0)
	if ours.Type == "string" {
		note(&a.Formats, "format "+ours.Format+theirs.Format, ours.Format != "", theirs.Format != "")
	}
	if ours.Type == "array" {
		note(&a.Lists, "list type", merged(ours), merged(theirs))
	}
	for name := range ours.Properties {
		theirField, ok := theirs.Properties[name]
		if !ok {
			continue // in metadata, or where all fields are preserved
		}
		note(&a.Required, "required "+name, slices.Contains(ours.Required, name), slices.Contains(theirs.Required, name))
		ourField := ours.Properties[name]
		a.schema(strings.TrimSuffix(at, ".")+"."+name, &ourField, &theirField)
	}
	if ours.Items != nil && theirs.Items != nil && ours.Items.Schema != nil && theirs.Items.Schema != nil {
		a.schema(at+"[]", ours.Items.Schema, theirs.Items.Schema)
	}
	if ours.AdditionalProperties != nil && theirs.AdditionalProperties != nil && ours.AdditionalProperties.Schema != nil && theirs.AdditionalProperties.Schema != nil {
		a.schema(at+"[*]", ours.AdditionalProperties.Schema, theirs.AdditionalProperties.Schema)
	}
}

// merged reports whether the items of a list have an identity.
func merged(s *v1.JSONSchemaProps) bool { return s.XListType != nil && *s.XListType != "atomic" }
