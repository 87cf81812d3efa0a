// Package check validates the schema of a custom resource, with the messages of
// Kubernetes: structural rules, defaults, forbidden keywords.
//
// It knows which mistakes of an old schema an update may keep (Tolerance). It does not know
// the definition around a schema, or expressions (CEL).
package check

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/jsonschema"
	"github.com/anykind/anykind/internal/schema/structural"
)

// Schema returns all errors in the schema of a version of a custom resource at at. Of the expressions
// of x-kubernetes-validations it only checks the presence.
func Schema(props *apiextensionsv1.JSONSchemaProps, at *field.Path) *Mistakes {
	return Tolerance{}.Check(props, at)
}

// Mistakes are the errors of a schema, by their kind.
type Mistakes struct {
	// Structure has the reasons for which the schema is not structural.
	Structure field.ErrorList
	// Defaults has the errors of default values. They are checked only in a structural schema.
	Defaults field.ErrorList
	// Keywords are used wrongly, each for itself.
	Keywords field.ErrorList
	// Broken has the paths of the schemas to which Keywords belong. The path of an error can be deeper: a wrong list is
	// reported at its items.
	Broken []string
	// Unsupported is the error of compiling the schema, or nil.
	Unsupported error

	at    *field.Path
	loose bool // the schema need not be structural
}

// Check is Schema for an update of a schema.
func (t Tolerance) Check(props *apiextensionsv1.JSONSchemaProps, at *field.Path) *Mistakes {
	m := &Mistakes{at: at, loose: t.NonStructural}
	if props == nil {
		return m
	}
	defaults, err := structural.CompileDefaults(props)
	if err == nil {
		err = jsonschema.Supported(props)
	}
	switch structure := jsonschema.CheckStructural(props, at); {
	case t.NonStructural:
	case err != nil:
		// The checks below report it in other words, with its place.
		m.Unsupported = err
	case len(structure) > 0:
		m.Structure = structure
	default:
		m.Defaults = defaults.Check(at, t.UnprunedDefaults)
	}
	c := &ruleCheck{tolerate: t}
	c.schema(props, at, place{root: true})
	m.Keywords, m.Broken = c.errs, c.broken
	return m
}

// Structural reports whether the schema is structural. It is false if the schema need not be.
func (m *Mistakes) Structural() bool {
	return len(m.Structure) == 0 && m.Unsupported == nil && !m.loose
}

// Errors returns all of it.
func (m *Mistakes) Errors() field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, m.Structure...)
	errs = append(errs, m.Defaults...)
	errs = append(errs, m.Keywords...)
	if len(errs) == 0 && m.Unsupported != nil {
		errs = append(errs, field.Invalid(m.at, "", m.Unsupported.Error()))
	}
	return errs
}

// A place is the context of a schema: everything on which its rules depend besides the schema.
type place struct {
	root       bool
	insideMeta bool
	noDefault  string // reason for which no default is allowed here
}

// A ruleCheck collects the errors that do not concern the structure.
type ruleCheck struct {
	errs     field.ErrorList
	broken   []string
	at       *field.Path // of the schema that is checked
	tolerate Tolerance
}

func (c *ruleCheck) add(errs ...*field.Error) {
	c.errs = append(c.errs, errs...)
	if len(errs) > 0 {
		c.broken = append(c.broken, c.at.String())
	}
}

// schema checks a schema and all inside it, junctors included.
func (c *ruleCheck) schema(p *apiextensionsv1.JSONSchemaProps, at *field.Path, in place) {
	if p == nil {
		return
	}
	c.at = at
	c.keywords(p, at, in)
	if p.UniqueItems {
		c.add(field.Forbidden(at.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
	}
	below := in
	below.root = false
	c.fields(p, at, in, below)
	c.schema(p.Not, at.Child("not"), below)
	for _, junctor := range []struct {
		name string
		list []apiextensionsv1.JSONSchemaProps
	}{{"allOf", p.AllOf}, {"oneOf", p.OneOf}, {"anyOf", p.AnyOf}} {
		for i := range junctor.list {
			c.schema(&junctor.list[i], at.Child(junctor.name).Index(i), below)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Definitions)) {
		sub := p.Definitions[name]
		c.schema(&sub, at.Child("definitions").Key(name), below)
	}
	if p.Items != nil {
		c.schema(p.Items.Schema, at.Child("items"), below)
		for i := range p.Items.JSONSchemas {
			c.schema(&p.Items.JSONSchemas[i], at.Child("items").Index(i), below)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Dependencies)) {
		c.schema(p.Dependencies[name].Schema, at.Child("dependencies").Key(name), below)
	}
	c.at = at
	if p.XPreserveUnknownFields != nil && !*p.XPreserveUnknownFields {
		c.add(field.Invalid(at.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	c.listsAndMaps(p, at)
	c.validations(p, at)
}

// fields checks the schemas of an object's fields.
func (c *ruleCheck) fields(p *apiextensionsv1.JSONSchemaProps, at *field.Path, in, below place) {
	if a := p.AdditionalProperties; a != nil {
		if len(p.Properties) > 0 && (!a.Allows || a.Schema != nil) {
			c.add(field.Forbidden(at.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive"))
		}
		sub := below
		if in.insideMeta {
			sub.noDefault = "inside additionalProperties applying to object metadata"
		}
		c.schema(a.Schema, at.Child("additionalProperties"), sub)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		sub := below
		if (in.root || p.XEmbeddedResource) && jsonschema.IsCommon(name) {
			sub.insideMeta = true
			if in.root {
				sub.noDefault = "in top-level " + name
			}
		}
		schema := p.Properties[name]
		c.schema(&schema, at.Child("properties").Key(name), sub)
	}
}

// keywords checks for keywords that no schema of a custom resource may have.
func (c *ruleCheck) keywords(p *apiextensionsv1.JSONSchemaProps, at *field.Path, in place) {
	if p.Type != "" && !slices.Contains(jsonschema.Types, p.Type) && !c.tolerate.UnknownTypes {
		c.add(field.NotSupported(at.Child("type"), p.Type, jsonschema.Types))
	}
	if p.Default != nil && in.noDefault != "" {
		c.add(field.Forbidden(at.Child("default"), "must not be set "+in.noDefault))
	}
	for _, k := range []struct {
		name  string
		found bool
	}{
		{"id", p.ID != ""},
		{"additionalItems", p.AdditionalItems != nil},
		{"patternProperties", len(p.PatternProperties) > 0},
		{"definitions", len(p.Definitions) > 0},
		{"dependencies", p.Dependencies != nil},
		{"$ref", p.Ref != nil},
	} {
		if k.found {
			c.add(field.Forbidden(at.Child(k.name), k.name+" is not supported"))
		}
	}
	if p.Type == "null" {
		c.add(field.Forbidden(at.Child("type"), "type cannot be set to null, use nullable as an alternative"))
	}
	if p.Items != nil && len(p.Items.JSONSchemas) > 0 {
		c.add(field.Forbidden(at.Child("items"), "items must be a schema object and not an array"))
	}
	if in.insideMeta && p.XEmbeddedResource {
		c.add(field.Forbidden(at.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"))
	}
}

// validations checks the form of x-kubernetes-validations.
func (c *ruleCheck) validations(p *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	at = at.Child("x-kubernetes-validations")
	for i, v := range p.XValidations {
		at := at.Index(i)
		rule, message := strings.TrimSpace(v.Rule), strings.TrimSpace(v.Message)
		switch {
		case rule == "":
			c.add(field.Required(at.Child("rule"), "rule is not specified"))
		case v.Message != "" && message == "":
			c.add(field.Invalid(at.Child("message"), v.Message, "must be non-empty if specified"))
		case multiline(message):
			c.add(field.Invalid(at.Child("message"), v.Message, "must not contain line breaks"))
		case multiline(rule) && message == "":
			c.add(field.Required(at.Child("message"), "message must be specified if rule contains line breaks"))
		}
		if v.MessageExpression != "" && strings.TrimSpace(v.MessageExpression) == "" {
			c.add(field.Required(at.Child("messageExpression"), "messageExpression must be non-empty if specified"))
		}
		if v.Reason != nil && !slices.Contains(reasons, string(*v.Reason)) {
			c.add(field.NotSupported(at.Child("reason"), *v.Reason, reasons))
		}
		if v.FieldPath != "" && strings.TrimSpace(v.FieldPath) == "" {
			c.add(field.Invalid(at.Child("fieldPath"), v.FieldPath, "must be non-empty if specified"))
		}
		if multiline(v.FieldPath) {
			c.add(field.Invalid(at.Child("fieldPath"), v.FieldPath, "must not contain line breaks"))
		}
		if _, _, err := jsonschema.FollowPath(v.FieldPath, p, true); err != nil && jsonschema.Supported(p) == nil {
			c.add(field.Invalid(at.Child("fieldPath"), v.FieldPath, "must be a valid path"))
		}
	}
}

// reasons are the valid values of reason.
var reasons = []string{
	string(apiextensionsv1.FieldValueDuplicate), string(apiextensionsv1.FieldValueForbidden),
	string(apiextensionsv1.FieldValueInvalid), string(apiextensionsv1.FieldValueRequired),
}

func multiline(s string) bool { return strings.ContainsAny(s, "\n\r") }
