package change

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Preparations for a change that rejects objects.
const (
	changeFirst   = "Change these objects first: anykind crd try finds them."
	anotherWay    = "Keep the field in this version, and remove it in a new version."
	whileItStays  = "Objects with the value are rejected when the field changes; ratcheting accepts it unchanged."
	wheneverAgain = "Every write of an object with the value is rejected; ratcheting does not apply."
)

// refuses adds a finding about values that become invalid.
func (c *comparison) refuses(path, change, what string, ratcheting Ratcheting) {
	if path == "" {
		ratcheting = NeverSaves // every write changes the whole object
	}
	reason := whileItStays
	if ratcheting == NeverSaves {
		reason = wheneverAgain
	}
	c.add(Finding{Severity: Breaking, Path: path, Change: change, What: what, Reason: reason, WayOut: changeFirst, Ratcheting: ratcheting})
}

func (c *comparison) safe(path, change, what string) {
	c.add(Finding{Severity: Safe, Path: path, Change: change, What: what})
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func isTrue(b *bool) bool { return b != nil && *b }

// keepsUnknown reports whether a schema preserves unknown fields.
func keepsUnknown(p *v1.JSONSchemaProps) bool { return isTrue(p.XPreserveUnknownFields) }

// schema compares two schemas of one value, and of all in it.
func (c *comparison) schema(path string, a, b *v1.JSONSchemaProps) {
	if a == nil || b == nil {
		return
	}
	if !c.types(path, a, b) {
		return // all below it is another
	}
	c.fields(path, a, b)
	c.required(path, a, b)
	c.defaults(path, a, b)
	c.enum(path, a, b)
	c.bounds(path, a, b)
	c.texts(path, a, b)
	c.lists(path, a, b)
	c.alternatives(path, a, b)
	c.rules(path, a, b)
	if a.Items != nil && b.Items != nil {
		c.schema(path+"[]", a.Items.Schema, b.Items.Schema)
	}
	if a.AdditionalProperties != nil && b.AdditionalProperties != nil {
		c.schema(path+"[*]", a.AdditionalProperties.Schema, b.AdditionalProperties.Schema)
	}
}

// typeOf names the type of a schema.
func typeOf(p *v1.JSONSchemaProps) string {
	switch {
	case p.XIntOrString:
		return "int-or-string"
	case p.Type == "":
		return "anything"
	}
	return p.Type
}

// types compares the types, and reports whether the rest can be compared.
func (c *comparison) types(path string, a, b *v1.JSONSchemaProps) bool {
	was, is := typeOf(a), typeOf(b)
	wider := is == "anything" || was == "integer" && (is == "number" || is == "int-or-string") || was == "string" && is == "int-or-string"
	switch {
	case was == is:
	case wider:
		c.add(Finding{Severity: Caution, Path: path, Change: "type-widened", What: fmt.Sprintf("type %s becomes %s", was, is),
			Reason: "Clients may read values of a type that they do not expect."})
	default:
		c.refuses(path, "type-changed", fmt.Sprintf("type %s becomes %s", was, is), Saves)
		return false
	}
	switch {
	case a.Nullable && !b.Nullable:
		c.add(Finding{Severity: Caution, Path: path, Change: "null-dropped", What: "null is no longer preserved",
			Reason: "Reads return objects with null without the field, or with its default."})
	case !a.Nullable && b.Nullable:
		c.safe(path, "null-allowed", "null is allowed")
	}
	if a.XEmbeddedResource != b.XEmbeddedResource {
		if b.XEmbeddedResource {
			c.refuses(path, "embedded-resource-added", "the value must be a Kubernetes object, with apiVersion and kind", NeverSaves)
		} else {
			c.safe(path, "embedded-resource-removed", "the value need not be a Kubernetes object")
		}
	}
	return true
}

// fields compares which fields there are.
func (c *comparison) fields(path string, a, b *v1.JSONSchemaProps) {
	for _, name := range sorted(a.Properties) {
		was, at := a.Properties[name], join(path, name)
		is, ok := b.Properties[name]
		switch {
		case ok:
			c.schema(at, &was, &is)
		case keepsUnknown(b):
			c.add(Finding{Severity: Caution, Path: at, Change: "field-undescribed", What: "the field has no schema any more", Reason: "The field is preserved, but neither validated nor defaulted."})
		case b.AdditionalProperties != nil:
			c.schema(at, &was, b.AdditionalProperties.Schema)
		case path == "" && ofEveryObject(name):
		default:
			c.add(Finding{Severity: Breaking, Path: at, Change: "field-removed", What: "the field is removed",
				Reason: "The field is pruned from reads and removed by the next write of each object, and strict field validation rejects it.",
				WayOut: anotherWay})
		}
	}
	for _, name := range sorted(b.Properties) {
		if _, ok := a.Properties[name]; ok {
			continue
		}
		is, at := b.Properties[name], join(path, name)
		switch {
		case a.AdditionalProperties != nil && a.AdditionalProperties.Schema != nil:
			c.schema(at, a.AdditionalProperties.Schema, &is)
		case keepsUnknown(a) || a.AdditionalProperties != nil:
			c.refuses(at, "field-described", "the field gets a schema, and its values are validated", Saves)
		default:
			c.safe(at, "field-added", "the field is new")
			if is.Default != nil {
				c.add(Finding{Severity: Caution, Path: at, Change: "default-added", What: fmt.Sprintf("objects without the field get the default %s", is.Default.Raw),
					Reason: "Reads of all objects return the default, without a write."})
			}
		}
	}
	switch {
	case keepsUnknown(a) && !keepsUnknown(b):
		c.add(Finding{Severity: Breaking, Path: path, Change: "unknown-fields-dropped", What: "unknown fields are no longer preserved",
			Reason: "Unknown fields are pruned from reads, and removed by the next write of each object.",
			WayOut: "Add the fields to the schema first."})
	case !keepsUnknown(a) && keepsUnknown(b):
		c.safe(path, "unknown-fields-kept", "unknown fields are preserved")
	}
	if a.AdditionalProperties != nil && b.AdditionalProperties == nil && !keepsUnknown(b) {
		c.add(Finding{Severity: Breaking, Path: path, Change: "keys-dropped", What: "arbitrary keys are no longer preserved",
			Reason: "Unknown keys are removed by the next write of each object.", WayOut: anotherWay})
	}
}

// required compares which fields there must be.
func (c *comparison) required(path string, a, b *v1.JSONSchemaProps) {
	for _, name := range b.Required {
		if slices.Contains(a.Required, name) {
			continue
		}
		if field, ok := b.Properties[name]; ok && field.Default != nil {
			c.safe(join(path, name), "required-with-default", "the field is required and has a default")
			continue
		}
		f := Finding{Severity: Breaking, Path: join(path, name), Change: "field-required", What: "the field becomes required",
			Reason: "Objects without the field are rejected when " + path + " changes; ratcheting accepts it unchanged.",
			WayOut: "Add a default, or set the field in all objects first: anykind crd try finds them.", Ratcheting: SavesUnchanged}
		if path == "" {
			f.Reason, f.Ratcheting = "Every write of an object without the field is rejected; ratcheting does not apply.", NeverSaves
		}
		c.add(f)
	}
	for _, name := range a.Required {
		if !slices.Contains(b.Required, name) {
			c.add(Finding{Severity: Caution, Path: join(path, name), Change: "field-optional", What: "the field is no longer required",
				Reason: "Clients may read objects without it."})
		}
	}
}

// defaults compares default values.
func (c *comparison) defaults(path string, a, b *v1.JSONSchemaProps) {
	switch {
	case a.Default == nil && b.Default == nil:
	case a.Default == nil:
		c.add(Finding{Severity: Caution, Path: path, Change: "default-added", What: fmt.Sprintf("objects without the field get the default %s", b.Default.Raw),
			Reason: "Reads of all objects return the default, without a write."})
	case b.Default == nil:
		c.add(Finding{Severity: Breaking, Path: path, Change: "default-removed", What: fmt.Sprintf("the default %s is removed", a.Default.Raw),
			Reason: "New objects have no value in the field, and neither have stored objects without a write since the default was added.",
			WayOut: "Rewrite the objects first, so that they store the default, and find clients that rely on it."})
	case !bytes.Equal(a.Default.Raw, b.Default.Raw):
		c.add(Finding{Severity: Breaking, Path: path, Change: "default-changed", What: fmt.Sprintf("the default changes from %s to %s", a.Default.Raw, b.Default.Raw),
			Reason: "New objects without the field get the new default; stored objects keep the old value.",
			WayOut: "Keep the default in this version, and change it in a new one."})
	}
}

// enum compares which values are allowed.
func (c *comparison) enum(path string, a, b *v1.JSONSchemaProps) {
	was, is := valuesOf(a), valuesOf(b)
	switch {
	case len(was) == 0 && len(is) == 0:
	case len(was) == 0:
		c.refuses(path, "enum-added", "only these values are allowed: "+strings.Join(is, ", "), Saves)
	case len(is) == 0:
		c.add(Finding{Severity: Caution, Path: path, Change: "enum-removed", What: "all values are allowed", Reason: "Clients may read unknown values."})
	default:
		if gone := without(was, is); len(gone) > 0 {
			c.refuses(path, "enum-value-removed", "no longer allowed: "+strings.Join(gone, ", "), Saves)
		}
		if added := without(is, was); len(added) > 0 {
			c.add(Finding{Severity: Caution, Path: path, Change: "enum-value-added", What: "also allowed: " + strings.Join(added, ", "),
				Reason: "Clients may read unknown values."})
		}
	}
}

func valuesOf(p *v1.JSONSchemaProps) (all []string) {
	for _, v := range p.Enum {
		all = append(all, string(bytes.TrimSpace(v.Raw)))
	}
	return all
}

func without(all, others []string) (left []string) {
	for _, s := range all {
		if !slices.Contains(others, s) {
			left = append(left, s)
		}
	}
	return left
}
