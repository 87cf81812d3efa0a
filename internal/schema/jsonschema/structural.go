package jsonschema

import (
	"fmt"
	"regexp"
	"sort"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A schema is structural if the structure of an object follows from it without evaluation: every place
// has one type, and the junctors (allOf, anyOf, oneOf, not) only constrain places that are specified
// outside them.

// A level is the kind of place of a schema.
type level int

const (
	atRoot level = iota
	atItem
	atField
)

// structuralCheck collects the reasons for which a schema is not structural.
type structuralCheck struct{ errs field.ErrorList }

func (c *structuralCheck) forbid(at *field.Path, detail string) {
	c.errs = append(c.errs, field.Forbidden(at, detail))
}

func (c *structuralCheck) require(at *field.Path, detail string) {
	c.errs = append(c.errs, field.Required(at, detail))
}

func (c *structuralCheck) invalid(at *field.Path, value any, detail string) {
	c.errs = append(c.errs, field.Invalid(at, value, detail))
}

// CheckStructural returns the reasons for which a whole schema is not structural, in the order of the
// messages.
func CheckStructural(props *apiextensionsv1.JSONSchemaProps, at *field.Path) field.ErrorList {
	c := &structuralCheck{}
	c.place(props, atRoot, at)
	c.completeValues(props, props, at, at)
	sort.SliceStable(c.errs, func(i, j int) bool { return c.errs[i].Error() < c.errs[j].Error() })
	return c.errs
}

// place checks the schema of a place outside of junctors, and all below it.
func (c *structuralCheck) place(p *apiextensionsv1.JSONSchemaProps, lvl level, at *field.Path) {
	if p == nil {
		return
	}
	items := Items(p)
	if p.Type == "array" && items == nil {
		c.require(at.Child("items"), "must be specified")
	}
	c.place(items, atItem, at.Child("items"))
	for _, name := range propertyNames(p.Properties) {
		sub := p.Properties[name]
		c.place(&sub, atField, at.Child("properties").Key(name))
	}
	if a := p.AdditionalProperties; a != nil {
		if lvl == atRoot {
			c.forbid(at.Child("additionalProperties"), "must not be used at the root")
		}
		c.place(a.Schema, atField, at.Child("additionalProperties"))
	}
	if p.XIntOrString && preserves(p) {
		c.invalid(at.Child("x-kubernetes-preserve-unknown-fields"), true, "must be false if x-kubernetes-int-or-string is true")
	}
	if p.XIntOrString && p.XEmbeddedResource {
		c.invalid(at.Child("x-kubernetes-embedded-resource"), true, "must be false if x-kubernetes-int-or-string is true")
	}
	c.values(p, IsIntOrString(p.AnyOf), len(p.AllOf) > 0 && IsIntOrString(p.AllOf[0].AnyOf), at)
	c.placeType(p, lvl, at)
	c.placeMetadata(p, lvl, at)
	if p.XEmbeddedResource && !preserves(p) && len(p.Properties) == 0 {
		c.require(at.Child("properties"), "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields")
	}
}

func (c *structuralCheck) placeType(p *apiextensionsv1.JSONSchemaProps, lvl level, at *field.Path) {
	const embedded = "must be object if x-kubernetes-embedded-resource is true"
	switch {
	case p.XEmbeddedResource && p.Type == "":
		c.require(at.Child("type"), embedded)
	case p.XEmbeddedResource && p.Type != "object":
		c.invalid(at.Child("type"), p.Type, embedded)
	case p.Type == "" && !p.XIntOrString && !preserves(p):
		c.require(at.Child("type"), "must not be empty "+map[level]string{
			atRoot: "at the root", atItem: "for specified array items", atField: "for specified object fields",
		}[lvl])
	}
	if p.XEmbeddedResource && p.AdditionalProperties != nil {
		c.forbid(at.Child("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set")
	}
	if lvl == atRoot && p.Type != "" && p.Type != "object" {
		c.invalid(at.Child("type"), p.Type, "must be object at the root")
	}
}

// placeMetadata checks the schemas of apiVersion, kind and metadata.
func (c *structuralCheck) placeMetadata(p *apiextensionsv1.JSONSchemaProps, lvl level, at *field.Path) {
	whole := lvl == atRoot || p.XEmbeddedResource
	at = at.Child("properties")
	for _, name := range []string{"kind", "apiVersion"} {
		if sub, ok := p.Properties[name]; ok && whole && sub.Type != "string" {
			c.invalid(at.Key(name).Child("type"), sub.Type, "must be string")
		}
	}
	meta, ok := p.Properties["metadata"]
	if !ok {
		return
	}
	if whole && meta.Type != "object" {
		c.invalid(at.Key("metadata").Child("type"), meta.Type, "must be object")
	}
	if lvl == atRoot && !onlyNames(meta) {
		c.forbid(at.Key("metadata"), "must not specify anything other than name and generateName, but metadata is implicitly specified")
	}
}

// onlyNames reports whether a schema of metadata constrains only name and generateName.
func onlyNames(meta apiextensionsv1.JSONSchemaProps) bool {
	names := 0
	for _, name := range []string{"name", "generateName"} {
		if _, ok := meta.Properties[name]; ok {
			names++
		}
	}
	if names == len(meta.Properties) {
		meta.Properties = nil
	}
	meta.Type = ""
	meta.Default = nil // forbidden elsewhere
	return apiequality.Semantic.DeepEqual(meta, apiextensionsv1.JSONSchemaProps{})
}

// values checks the value validations in junctors. The two forms of int-or-string may contain types
// there.
func (c *structuralCheck) values(p *apiextensionsv1.JSONSchemaProps, skipAnyOf, skipFirstAllOf bool, at *field.Path) {
	if !skipAnyOf {
		for i := range p.AnyOf {
			c.nested(&p.AnyOf[i], false, at.Child("anyOf").Index(i))
		}
	}
	for i := range p.AllOf {
		c.nested(&p.AllOf[i], skipFirstAllOf && i == 0, at.Child("allOf").Index(i))
	}
	for i := range p.OneOf {
		c.nested(&p.OneOf[i], false, at.Child("oneOf").Index(i))
	}
	c.nested(p.Not, false, at.Child("not"))
	if p.Pattern != "" {
		if _, err := regexp.Compile(p.Pattern); err != nil {
			c.invalid(at.Child("pattern"), p.Pattern, fmt.Sprintf("must be a valid regular expression, but isn't: %v", err))
		}
	}
}

// nested checks a schema under a junctor.
func (c *structuralCheck) nested(p *apiextensionsv1.JSONSchemaProps, skipAnyOf bool, at *field.Path) {
	if p == nil {
		return
	}
	c.values(p, skipAnyOf, false, at)
	c.nested(Items(p), false, at.Child("items"))
	for _, name := range propertyNames(p.Properties) {
		sub := p.Properties[name]
		c.nested(&sub, false, at.Child("properties").Key(name))
	}
	const empty, undefined, notSet = "must be empty to be structural", "must be undefined to be structural", "must be false to be structural"
	for _, f := range []struct {
		name   string
		found  bool
		detail string
	}{
		{"type", p.Type != "", empty},
		{"additionalProperties", p.AdditionalProperties != nil && (p.AdditionalProperties.Schema != nil || p.AdditionalProperties.Allows), undefined},
		{"default", Decode(p.Default) != nil, undefined},
		{"title", p.Title != "", empty},
		{"description", p.Description != "", empty},
		{"nullable", p.Nullable, notSet},
		{"x-kubernetes-preserve-unknown-fields", preserves(p), notSet},
		{"x-kubernetes-embedded-resource", p.XEmbeddedResource, notSet},
		{"x-kubernetes-int-or-string", p.XIntOrString, notSet},
		{"x-kubernetes-list-map-keys", len(p.XListMapKeys) > 0, empty},
		{"x-kubernetes-list-type", p.XListType != nil, undefined},
		{"x-kubernetes-map-type", p.XMapType != nil, undefined},
		{"x-kubernetes-validations", len(p.XValidations) > 0, empty},
	} {
		if f.found {
			c.forbid(at.Child(f.name), f.detail)
		}
	}
	if _, ok := p.Properties["metadata"]; ok {
		c.forbid(at.Child("properties").Key("metadata"), "must not be specified in a nested context")
	}
}

// completeValues checks that the places the junctors of values speak of are
// specified by s. at is where s is, said where values are.
func (c *structuralCheck) completeValues(values, s *apiextensionsv1.JSONSchemaProps, at, definedIn *field.Path) {
	if values == nil {
		return
	}
	c.complete(values.Not, s, at, definedIn.Child("not"))
	for i := range values.AllOf {
		c.complete(&values.AllOf[i], s, at, definedIn.Child("allOf").Index(i))
	}
	for i := range values.AnyOf {
		c.complete(&values.AnyOf[i], s, at, definedIn.Child("anyOf").Index(i))
	}
	for i := range values.OneOf {
		c.complete(&values.OneOf[i], s, at, definedIn.Child("oneOf").Index(i))
	}
}

func (c *structuralCheck) complete(nested, s *apiextensionsv1.JSONSchemaProps, at, definedIn *field.Path) {
	if nested == nil {
		return
	}
	because := func(definedIn *field.Path) string { return "because it is defined in " + definedIn.String() }
	if s == nil {
		c.require(at, because(definedIn))
		return
	}
	c.completeValues(nested, s, at, definedIn)
	c.complete(Items(nested), Items(s), at.Child("items"), definedIn.Child("items"))
	for _, name := range propertyNames(nested.Properties) {
		sub := nested.Properties[name]
		there, here := definedIn.Child("properties").Key(name), at.Child("properties").Key(name)
		if specified, ok := s.Properties[name]; ok {
			c.complete(&sub, &specified, here, there)
		} else {
			c.require(here, because(there))
		}
	}
}
