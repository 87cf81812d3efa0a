package translate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// junctors adds allOf, anyOf, oneOf and not to a schema.
func (t *translation) junctors(path string, in map[string]any, s v1.JSONSchemaProps) v1.JSONSchemaProps {
	all, _ := in["allOf"].([]any)
	for _, branch := range all {
		s = t.merge(path, s, t.schema(path, typed(branch, s.Type)))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches, ok := in[keyword].([]any); ok && len(branches) > 0 {
			s = t.merge(path, s, t.alternatives(path, keyword, branches, s.Type))
		}
	}
	if in["not"] != nil {
		t.note(path, "not is not checked; use a CEL rule")
	}
	return s
}

// alternatives returns one schema for branches of which a value must match one. Branches without a
// type have that of the values around them.
func (t *translation) alternatives(path, keyword string, branches []any, around string) v1.JSONSchemaProps {
	nullable := false
	var all []v1.JSONSchemaProps
	var required []v1.JSONSchemaProps // of each
	var exact []v1.JSONSchemaProps    // those with nothing but required
	for _, branch := range branches {
		in, _ := branch.(map[string]any)
		if in["type"] == "null" || len(in) == 1 && reflect.DeepEqual(in["enum"], []any{nil}) {
			nullable = true
			continue
		}
		if required, ok := in["required"].([]any); ok && (len(in) == 1 || len(in) == 2 && in["type"] == "object") {
			exact = append(exact, v1.JSONSchemaProps{Required: texts(required)})
			continue
		}
		one := t.schema(path, typed(branch, around))
		all = append(all, one)
		if len(one.Required) > 0 {
			required = append(required, v1.JSONSchemaProps{Required: one.Required})
		}
	}
	switch {
	case len(exact) == len(branches) && around == "object":
		s := v1.JSONSchemaProps{Type: "object"}
		if keyword == "oneOf" {
			s.OneOf = exact
		} else {
			s.AnyOf = exact
		}
		return s
	case len(exact) > 0:
		t.note(path, "%s is not checked: its branches differ in more than required", keyword)
	}
	if len(all) == 0 {
		s := anything()
		s.Nullable = nullable
		return s
	}
	s := all[0]
	for _, other := range all[1:] {
		s = t.either(path, keyword, s, other)
	}
	if s.Type == "object" && len(all) > 1 && len(required) == len(all) && len(s.Required) == 0 {
		s.AnyOf = required
	}
	s.Nullable = s.Nullable || nullable
	if s.Nullable && len(s.Enum) > 0 && !hasNull(s.Enum) {
		s.Enum = append(s.Enum, asJSON(nil))
	}
	return s
}

// typed returns a branch with the type of the schema around it.
func typed(branch any, typ string) any {
	in, ok := branch.(map[string]any)
	if !ok || typ == "" || in["type"] != nil || in["$ref"] != nil || in["allOf"] != nil || in["anyOf"] != nil || in["oneOf"] != nil {
		return branch
	}
	in = maps.Clone(in)
	in["type"] = typ
	if typ == "object" && in["additionalProperties"] == nil && in["properties"] == nil {
		in["additionalProperties"] = false // the fields are declared elsewhere
	}
	return in
}

func hasNull(values []v1.JSON) bool {
	return slices.ContainsFunc(values, func(v v1.JSON) bool { return string(v.Raw) == "null" })
}

func texts(list []any) (all []string) {
	for _, v := range list {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// either returns a schema for values of either of two: it has their common constraints.
func (t *translation) either(path, keyword string, a, b v1.JSONSchemaProps) v1.JSONSchemaProps {
	if reflect.DeepEqual(a, b) {
		return a
	}
	if a.XPreserveUnknownFields != nil && a.Type == "" {
		return a
	}
	if b.XPreserveUnknownFields != nil && b.Type == "" {
		return b
	}
	s := v1.JSONSchemaProps{Description: a.Description, Nullable: a.Nullable || b.Nullable, Type: a.Type, XIntOrString: a.XIntOrString}
	kinds := []string{typeOf(&a), typeOf(&b)}
	slices.Sort(kinds)
	switch {
	case kinds[0] == kinds[1]:
	case slices.Equal(kinds, []string{"integer", "number"}):
		s.Type = "number"
		return s
	case kinds[0] == "int-or-string" && kinds[1] == "string" || kinds[0] == "int-or-string" && kinds[1] == "integer" || slices.Equal(kinds, []string{"integer", "string"}):
		s.Type, s.XIntOrString = "", true
		return s
	default:
		t.note(path, "values can be %s: any value is accepted", strings.Join(kinds, " or "))
		return v1.JSONSchemaProps{Description: a.Description, Nullable: s.Nullable, XPreserveUnknownFields: new(true)}
	}
	switch {
	case len(a.Enum) > 0 && len(b.Enum) > 0:
		s.Enum = union(a.Enum, b.Enum)
	case s.Type == "object":
		return t.eitherObject(path, keyword, s, &a, &b)
	case s.Type == "array":
		items := t.either(path+"[]", keyword, *a.Items.Schema, *b.Items.Schema)
		s.Items = &v1.JSONSchemaPropsOrArray{Schema: &items}
		t.note(path, "%s is not checked: lists may have items of each branch", keyword)
	default:
		t.note(path, "%s is not checked: only the type that branches have in common is", keyword)
	}
	return s
}

// eitherObject has the fields of both, and requires what both require.
func (t *translation) eitherObject(path, keyword string, s v1.JSONSchemaProps, a, b *v1.JSONSchemaProps) v1.JSONSchemaProps {
	t.note(path, "%s is not checked: objects may have the fields of each branch", keyword)
	if a.AdditionalProperties != nil || b.AdditionalProperties != nil || a.XPreserveUnknownFields != nil || b.XPreserveUnknownFields != nil {
		if a.AdditionalProperties != nil && b.AdditionalProperties != nil && a.AdditionalProperties.Schema != nil && b.AdditionalProperties.Schema != nil {
			below := t.either(path+"[*]", keyword, *a.AdditionalProperties.Schema, *b.AdditionalProperties.Schema)
			s.AdditionalProperties = &v1.JSONSchemaPropsOrBool{Allows: true, Schema: &below}
			return s
		}
		s.XPreserveUnknownFields = new(true)
		return s
	}
	s.Properties = maps.Clone(a.Properties)
	if s.Properties == nil {
		s.Properties = map[string]v1.JSONSchemaProps{}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Properties)) {
		field, both := s.Properties[name]
		if both {
			s.Properties[name] = t.either(strings.TrimPrefix(path+"."+name, "."), keyword, field, b.Properties[name])
		} else {
			s.Properties[name] = b.Properties[name]
		}
	}
	for _, name := range a.Required {
		if slices.Contains(b.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

func typeOf(s *v1.JSONSchemaProps) string {
	if s.XIntOrString {
		return "int-or-string"
	}
	return s.Type
}

func union(a, b []v1.JSON) []v1.JSON {
	all := slices.Clone(a)
	for _, v := range b {
		if !slices.ContainsFunc(all, func(o v1.JSON) bool { return string(o.Raw) == string(v.Raw) }) {
			all = append(all, v)
		}
	}
	return all
}

// merge is a schema for values that two are for at the same time.
func (t *translation) merge(path string, a, b v1.JSONSchemaProps) v1.JSONSchemaProps {
	if a.Type == "" && !a.XIntOrString {
		return onto(b, a)
	}
	if b.Type == "" && !b.XIntOrString {
		return onto(a, b)
	}
	if typeOf(&a) != typeOf(&b) {
		t.note(path, "allOf has the types %s and %s, which exclude each other: the first is used", typeOf(&a), typeOf(&b))
		return a
	}
	s := a
	if a.Description == "" {
		s.Description = b.Description
	}
	s.Nullable = a.Nullable && b.Nullable
	x, y := reflect.ValueOf(&s).Elem(), reflect.ValueOf(&b).Elem()
	for i := range x.NumField() { // constraints of only one
		name := x.Type().Field(i).Name
		switch {
		case y.Field(i).IsZero() || name == "Nullable" || name == "Description" || name == "Properties" || name == "Required" || reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()):
		case x.Field(i).IsZero():
			x.Field(i).Set(y.Field(i))
		case name == "XPreserveUnknownFields":
		default:
			t.note(path, "%s is set twice: the first value is used", lower(name))
		}
	}
	s.Required = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(a.Required), b.Required...))))
	s.Properties = maps.Clone(a.Properties)
	for _, name := range slices.Sorted(maps.Keys(b.Properties)) {
		if s.Properties == nil {
			s.Properties = map[string]v1.JSONSchemaProps{}
		}
		if field, both := s.Properties[name]; both {
			s.Properties[name] = t.merge(strings.TrimPrefix(path+"."+name, "."), field, b.Properties[name])
		} else {
			s.Properties[name] = b.Properties[name]
		}
	}
	if len(s.Properties) > 0 { // an object without fields preserves all
		s.XPreserveUnknownFields = nil
		if s.AdditionalProperties != nil {
			t.note(path, "additionalProperties is not checked beside properties: all fields are preserved")
			s.AdditionalProperties, s.XPreserveUnknownFields = nil, new(true)
		}
	}
	return s
}

// onto returns s with the further constraints of other, which has no type.
func onto(s, other v1.JSONSchemaProps) v1.JSONSchemaProps {
	if other.Description != "" {
		s.Description = other.Description
	}
	if s.Default == nil {
		s.Default = other.Default
	}
	if len(s.Enum) == 0 {
		s.Enum = other.Enum
	}
	s.Nullable = s.Nullable || other.Nullable
	return s
}

func lower(name string) string { return fmt.Sprintf("%s%s", strings.ToLower(name[:1]), name[1:]) }
