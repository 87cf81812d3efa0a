package conversion

import (
	"maps"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A kind is the type of a field, as far as rules distinguish it.
type kind string

const (
	text    kind = "string"
	integer kind = "integer"
	number  kind = "number"
	boolean kind = "boolean"
	list    kind = "array"
	fields  kind = "object" // with known fields
	table   kind = "map"    // of any keys, or preserving unknown fields
	other   kind = "value of several types"
)

// kindOf returns the kind of values of a schema.
func kindOf(s *v1.JSONSchemaProps) kind {
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		return table
	}
	switch s.Type {
	case "object":
		if len(s.Properties) == 0 && s.AdditionalProperties != nil {
			return table
		}
		return fields
	case "array", "string", "integer", "number", "boolean":
		return kind(s.Type)
	default:
		return other
	}
}

// scalar reports whether values are single ones that can be converted to each other.
func (k kind) scalar() bool {
	return k == text || k == integer || k == number || k == boolean
}

// leaves calls visit for each field of a schema that has no known fields below it.
func leaves(s *v1.JSONSchemaProps, at path, visit func(path, *v1.JSONSchemaProps)) {
	if kindOf(s) != fields {
		visit(slices.Clone(at), s)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[name]
		if len(at) == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		leaves(&below, append(at, name), visit)
	}
}

// difference returns the first place at which values of a do not fit b: where the types differ, or b would
// drop a field. It returns "" if all of them fit.
func difference(a, b *v1.JSONSchemaProps) (at string, differs bool) {
	ka, kb := kindOf(a), kindOf(b)
	if ka != kb {
		if ka == fields && kb == table && b.AdditionalProperties == nil {
			return "", false // it keeps all
		}
		return "", true
	}
	switch ka {
	case fields:
		for _, name := range slices.Sorted(maps.Keys(a.Properties)) {
			mine := a.Properties[name]
			its, ok := b.Properties[name]
			if !ok {
				return "." + name, true
			}
			if at, differs := difference(&mine, &its); differs {
				return "." + name + at, true
			}
		}
	case list:
		mine, its := itemsOf(a), itemsOf(b)
		if mine == nil || its == nil {
			return "", false
		}
		at, differs := difference(mine, its)
		return "[]" + at, differs
	case table:
		x, y := a.AdditionalProperties, b.AdditionalProperties
		if x == nil || y == nil || x.Schema == nil || y.Schema == nil {
			return "", false
		}
		at, differs := difference(x.Schema, y.Schema)
		return "[*]" + at, differs
	}
	return "", false
}

// itemsOf returns the schema of the elements of a list, or nil.
func itemsOf(s *v1.JSONSchemaProps) *v1.JSONSchemaProps {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}
