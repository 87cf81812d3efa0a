package translate

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/format"
)

// annotations returns keywords without an effect on values.
func annotations() []string {
	return []string{"examples", "example", "$comment", "readOnly", "writeOnly", "deprecated", "contentMediaType", "externalDocs", "xml", "discriminator"}
}

// silent returns keywords that are handled elsewhere, or have no effect.
func silent() []string {
	return []string{"$schema", "$id", "id", "$anchor", "$defs", "definitions", "components", "title", "description", "$vocabulary", "openapi", "info", "paths", "nullable", "then", "else"}
}

// lost returns the keywords that structural schemas lack, with the missing check.
func lost() map[string]string {
	return map[string]string{
		"if":                "use a CEL rule",
		"dependentRequired": "use a CEL rule", "dependentSchemas": "use a CEL rule", "dependencies": "use a CEL rule",
		"propertyNames": "use a CEL rule: self.all(key, key.matches(...))",
		"contains":      "use a CEL rule: self.exists(item, ...)", "minContains": "", "maxContains": "",
		"unevaluatedItems": "", "contentSchema": "", "$dynamicRef": "", "$recursiveRef": "",
	}
}

// schema is the structural schema of a JSON schema.
func (t *translation) schema(path string, v any) v1.JSONSchemaProps {
	in, ok := v.(map[string]any)
	if !ok {
		if allowed, isBool := v.(bool); isBool && !allowed {
			t.note(path, "a structural schema cannot forbid all values: any value is accepted")
		}
		return anything()
	}
	if ref, ok := in["$ref"].(string); ok {
		beside := maps.Clone(in)
		for _, name := range append(silent(), "$ref") {
			if name != "description" && name != "nullable" {
				delete(beside, name)
			}
		}
		return t.reference(path, ref, beside)
	}
	s := v1.JSONSchemaProps{}
	if text, ok := in["description"].(string); ok {
		s.Description = text
	} else if text, ok := in["title"].(string); ok {
		s.Description = text
	}
	t.typesOf(path, in, &s)
	t.values(path, in, &s)
	t.object(path, in, &s)
	t.array(path, in, &s)
	t.leftOut(path, in)
	s = t.junctors(path, in, s)
	if s.Type == "" && !s.XIntOrString && s.XPreserveUnknownFields == nil {
		s.XPreserveUnknownFields = new(true)
	}
	return s
}

// typesOf determines the types of values: the declared ones, or those of the other keywords.
func (t *translation) typesOf(path string, in map[string]any, s *v1.JSONSchemaProps) {
	var names []string
	switch typ := in["type"].(type) {
	case string:
		names = []string{typ}
	case []any:
		for _, one := range typ {
			if name, ok := one.(string); ok {
				names = append(names, name)
			}
		}
	}
	if nullable, _ := in["nullable"].(bool); nullable || slices.Contains(names, "null") {
		s.Nullable = true
		names = slices.DeleteFunc(names, func(name string) bool { return name == "null" })
	}
	if len(names) == 0 {
		names = implied(in)
	}
	slices.Sort(names)
	switch {
	case len(names) == 1:
		s.Type = names[0]
	case slices.Equal(names, []string{"integer", "string"}):
		s.XIntOrString = true
	case slices.Equal(names, []string{"integer", "number"}):
		s.Type = "number"
	case len(names) > 1:
		t.note(path, "values can be %s: any value is accepted", strings.Join(names, " or "))
		*s = v1.JSONSchemaProps{Description: s.Description, Nullable: s.Nullable, XPreserveUnknownFields: new(true)}
	}
}

// implied returns the types that a schema without one implies.
func implied(in map[string]any) (names []string) {
	has := func(keywords ...string) bool {
		return slices.ContainsFunc(keywords, func(k string) bool { return in[k] != nil })
	}
	switch {
	case has("properties", "additionalProperties", "patternProperties"):
		return []string{"object"}
	case has("items", "prefixItems"):
		return []string{"array"}
	case has("pattern", "minLength", "maxLength", "contentEncoding"):
		return []string{"string"}
	case has("minimum", "maximum", "multipleOf"):
		return []string{"number"}
	}
	values, _ := in["enum"].([]any)
	if in["const"] != nil {
		values = []any{in["const"]}
	}
	for _, v := range values {
		name := map[bool]string{true: "integer", false: "number"}[isInteger(v)]
		switch v.(type) {
		case string:
			name = "string"
		case bool:
			name = "boolean"
		case nil:
			continue
		case map[string]any, []any:
			return nil
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func isInteger(v any) bool {
	n, ok := numberOf(v)
	return ok && n == math.Trunc(n)
}

func numberOf(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func number(v any) *float64 {
	if n, ok := numberOf(v); ok {
		return &n
	}
	return nil
}

func count(v any) *int64 {
	if n, ok := numberOf(v); ok {
		return new(int64(n))
	}
	return nil
}

// values translates the keywords for values of any type, numbers and strings.
func (t *translation) values(path string, in map[string]any, s *v1.JSONSchemaProps) {
	values, _ := in["enum"].([]any)
	if v, ok := in["const"]; ok {
		values = []any{v}
	}
	for _, v := range values {
		if v == nil {
			s.Nullable = true
		}
		s.Enum = append(s.Enum, asJSON(v))
	}
	if s.Nullable && len(s.Enum) > 0 && !slices.Contains(values, nil) {
		s.Enum = append(s.Enum, asJSON(nil))
	}
	if v, ok := in["default"]; ok && v != nil {
		s.Default = new(asJSON(v))
	}
	if s.Type == "integer" || s.Type == "number" {
		s.Minimum, s.Maximum, s.MultipleOf = number(in["minimum"]), number(in["maximum"]), number(in["multipleOf"])
		exclusive(in["exclusiveMinimum"], &s.Minimum, &s.ExclusiveMinimum)
		exclusive(in["exclusiveMaximum"], &s.Maximum, &s.ExclusiveMaximum)
	}
	if s.Type == "string" {
		s.MinLength, s.MaxLength = count(in["minLength"]), count(in["maxLength"])
		if pattern, ok := in["pattern"].(string); ok {
			if _, err := regexp.Compile(pattern); err != nil {
				t.note(path, "the pattern %s is not valid in RE2 and is omitted", pattern)
			} else {
				s.Pattern = pattern
			}
		}
		if encoding, _ := in["contentEncoding"].(string); encoding == "base64" {
			s.Format = "byte"
		}
	}
	if name, ok := in["format"].(string); ok {
		if format.Enforced(s.Type, name) {
			s.Format = name
		} else {
			t.note(path, "servers do not enforce the format %s: it is omitted", name)
		}
	}
}

// exclusive translates an exclusive bound: a number since draft 6, a flag of the other bound before.
func exclusive(v any, bound **float64, is *bool) {
	switch v := v.(type) {
	case bool:
		*is = v && *bound != nil
	case int64, float64:
		*bound, *is = number(v), true
	}
}

func asJSON(v any) v1.JSON {
	raw, _ := json.Marshal(v) // it was JSON
	return v1.JSON{Raw: raw}
}

// object translates the keywords for objects.
func (t *translation) object(path string, in map[string]any, s *v1.JSONSchemaProps) {
	if s.Type != "object" {
		return
	}
	s.MinProperties, s.MaxProperties = count(in["minProperties"]), count(in["maxProperties"])
	required, _ := in["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			s.Required = append(s.Required, name)
		}
	}
	slices.Sort(s.Required)
	properties, _ := in["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if properties[name] == false {
			continue // unknown fields are dropped
		}
		if s.Properties == nil {
			s.Properties = map[string]v1.JSONSchemaProps{}
		}
		s.Properties[name] = t.schema(at, properties[name])
	}
	patterns, _ := in["patternProperties"].(map[string]any)
	others, hasOthers := in["additionalProperties"]
	switch {
	case len(patterns) == 1 && len(s.Properties) == 0 && (!hasOthers || others == false):
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			t.note(path, "the pattern %s of keys is not checked; use a CEL rule", pattern)
			t.mapOf(path, patterns[pattern], s)
		}
	case len(patterns) > 0:
		t.note(path, "patternProperties is not checked: all fields are preserved")
		s.XPreserveUnknownFields = new(true)
	case others == true, !hasOthers && len(s.Properties) == 0:
		s.XPreserveUnknownFields = new(true)
	case hasOthers && others != false && len(s.Properties) > 0:
		t.note(path, "additionalProperties is not checked beside properties: all fields are preserved")
		s.XPreserveUnknownFields = new(true)
	case hasOthers && others != false:
		t.mapOf(path, others, s)
	}
}

func (t *translation) mapOf(path string, values any, s *v1.JSONSchemaProps) {
	if path == "" { // where structural schemas have no maps
		s.XPreserveUnknownFields = new(true)
		return
	}
	below := t.schema(path+"[*]", values)
	s.AdditionalProperties = &v1.JSONSchemaPropsOrBool{Allows: true, Schema: &below}
}

// array translates the keywords for lists.
func (t *translation) array(path string, in map[string]any, s *v1.JSONSchemaProps) {
	if s.Type != "array" {
		return
	}
	s.MinItems, s.MaxItems = count(in["minItems"]), count(in["maxItems"])
	items := anything()
	tuple, isTuple := in["prefixItems"].([]any)
	if !isTuple {
		tuple, isTuple = in["items"].([]any)
	}
	switch {
	case isTuple:
		t.note(path, "the %d schemas of positions in the list are not checked: any items are accepted", len(tuple))
	case in["items"] != nil:
		items = t.schema(path+"[]", in["items"])
	}
	s.Items = &v1.JSONSchemaPropsOrArray{Schema: &items}
	if unique, _ := in["uniqueItems"].(bool); unique {
		if items.Type != "" && items.Type != "object" && items.Type != "array" && !items.Nullable {
			s.XListType = new("set")
		} else {
			t.note(path, "uniqueItems is not checked: the items are not scalars")
		}
	}
}

// leftOut adds notes for ignored keywords.
func (t *translation) leftOut(path string, in map[string]any) {
	for _, keyword := range slices.Sorted(maps.Keys(in)) {
		if way, ok := lost()[keyword]; ok {
			if way != "" {
				way = "; " + way
			}
			t.note(path, "%s is not checked%s", keyword, way)
			continue
		}
		if slices.Contains(annotations(), keyword) {
			t.ignored[keyword]++
			continue
		}
		if !slices.Contains(silent(), keyword) && !slices.Contains(read(), keyword) {
			t.ignored[keyword]++
		}
	}
}

// read are the keywords that have a place in structural schemas.
func read() []string {
	return []string{
		"$ref", "type", "enum", "const", "default", "format", "contentEncoding", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "items", "prefixItems", "additionalItems", "minProperties", "maxProperties",
		"required", "properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "not",
	}
}
