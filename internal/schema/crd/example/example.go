// Package example generates small objects of a definition as a start for users.
//
// It knows schemas: required fields and permitted values. It does not evaluate rules and guesses at
// patterns, so an object may be invalid: the package returns several, the most useful first.
package example

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Of returns objects of a version, the best first: with the simple fields of the spec and fields that
// rules need, with defaulted fields, with only the required ones, and with all simple fields.
func Of(d *v1.CustomResourceDefinition, version *v1.CustomResourceDefinitionVersion) []map[string]any {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil
	}
	var all []map[string]any
	for _, m := range makers() {
		root := version.Schema.OpenAPIV3Schema
		tree := map[string]any{
			"apiVersion": d.Spec.Group + "/" + version.Name,
			"kind":       d.Spec.Names.Kind,
			"metadata":   map[string]any{"name": "example"},
		}
		for _, name := range fieldsOf(root) {
			if below := root.Properties[name]; name == "spec" || slices.Contains(root.Required, name) && tree[name] == nil && name != "status" {
				tree[name] = m.value(&below, name, 0, nil)
			}
		}
		all = append(all, tree)
	}
	return all
}

func fieldsOf(s *v1.JSONSchemaProps) []string {
	var all []string
	for name := range s.Properties {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// deepest limits the nesting of an object.
const deepest = 20

// A maker generates values.
type maker struct {
	simple   bool // with the scalars of the topmost object
	deep     bool // including those of all objects
	defaults bool // with defaulted fields
	rules    bool // with fields that rules need
}

func makers() []maker {
	return []maker{{simple: true, defaults: true}, {simple: true, defaults: true, rules: true}, {defaults: true}, {}, {simple: true, deep: true}}
}

// requiredField returns the first field that a rule requires: has(self.name), but not !has(self.name).
var requiredField = regexp.MustCompile(`(?:^|[^!])has\(self\.([\w.]+)\)`)

// value is a value that a schema probably accepts. Wanted are paths of fields that it should have.
func (m maker) value(s *v1.JSONSchemaProps, name string, depth int, wanted []string) any {
	switch {
	case depth > deepest:
		return nil
	case s.Default != nil && !(s.Type == "object" && len(s.Properties) > 0):
		return decoded(s.Default)
	case len(s.Enum) > 0:
		return decoded(&s.Enum[0])
	case s.XIntOrString:
		return int64(1)
	case s.XEmbeddedResource:
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "example"}}
	}
	switch s.Type {
	case "object":
		return m.object(s, depth, wanted)
	case "array":
		return m.array(s, name, depth)
	case "integer", "number":
		return number(s)
	case "boolean":
		return true
	case "string":
		return text(s, name)
	}
	return map[string]any{} // for arbitrary values
}

func decoded(v *v1.JSON) (value any) {
	_ = json.Unmarshal(v.Raw, &value) // a server has accepted it
	if n, ok := value.(float64); ok && n == math.Trunc(n) {
		return int64(n)
	}
	return value
}

func (m maker) object(s *v1.JSONSchemaProps, depth int, wanted []string) any {
	for _, r := range s.XValidations {
		if found := requiredField.FindStringSubmatch(r.Rule); found != nil && m.rules {
			wanted = append(wanted, found[1])
		}
	}
	tree := map[string]any{}
	if values := s.AdditionalProperties; values != nil && values.Schema != nil && s.MinProperties != nil {
		for i := range *s.MinProperties {
			tree[fmt.Sprintf("key%d", i+1)] = m.value(values.Schema, "", depth+1, nil)
		}
	}
	required := slices.Clone(s.Required)
	for _, alternatives := range [][]v1.JSONSchemaProps{s.OneOf, s.AnyOf} {
		if len(alternatives) > 0 {
			required = append(required, alternatives[0].Required...)
		}
	}
	for _, name := range fieldsOf(s) {
		below := s.Properties[name]
		scalar := below.Type != "object" && below.Type != "array" && below.Type != ""
		var inside []string
		isWanted := false
		for _, path := range wanted {
			first, rest, more := strings.Cut(path, ".")
			if isWanted = isWanted || first == name; first == name && more {
				inside = append(inside, rest)
			}
		}
		if isWanted || slices.Contains(required, name) || m.defaults && below.Default != nil || m.simple && scalar && (m.deep || depth == 0) {
			tree[name] = m.value(&below, name, depth+1, inside)
		}
	}
	return tree
}

func (m maker) array(s *v1.JSONSchemaProps, name string, depth int) any {
	list := []any{}
	if s.Items == nil || s.Items.Schema == nil {
		return list
	}
	n := int64(1)
	if s.MinItems != nil {
		n = max(n, *s.MinItems)
	}
	for i := range n {
		v := m.value(s.Items.Schema, strings.TrimSuffix(name, "s"), depth+1, nil)
		if tree, ok := v.(map[string]any); ok && i > 0 {
			for _, key := range s.XListMapKeys {
				if text, ok := tree[key].(string); ok {
					tree[key] = fmt.Sprintf("%s%d", text, i+1)
				}
			}
		}
		if text, ok := v.(string); ok && i > 0 && len(s.Items.Schema.Enum) == 0 {
			v = fmt.Sprintf("%s%d", text, i+1)
		}
		list = append(list, v)
	}
	return list
}

func number(s *v1.JSONSchemaProps) any {
	n := 1.0
	if s.Minimum != nil {
		n = max(n, *s.Minimum)
		if s.ExclusiveMinimum && n == *s.Minimum {
			n++
		}
	}
	if s.Maximum != nil && (n > *s.Maximum || s.ExclusiveMaximum && n == *s.Maximum) {
		n = *s.Maximum
		if s.ExclusiveMaximum {
			n--
		}
	}
	if s.MultipleOf != nil && *s.MultipleOf > 0 {
		n = math.Ceil(n / *s.MultipleOf) * *s.MultipleOf
	}
	if n == math.Trunc(n) {
		return int64(n)
	}
	return n
}

// ofFormat are strings of formats.
func ofFormat(format string) string {
	return map[string]string{
		"date-time": "2026-01-01T00:00:00Z", "date": "2026-01-01", "duration": "10s", "uuid": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
		"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "cidr": "192.0.2.0/24", "uri": "https://example.com", "email": "jane@example.com",
		"hostname": "example.com", "mac": "00:00:5e:00:53:01", "byte": "ZXhhbXBsZQ==",
	}[format]
}

// named are strings that fields of such names have.
var named = []struct {
	name *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`(?i)(timeout|interval|duration|period|ttl|delay)$`), "1h"},
	{regexp.MustCompile(`(?i)(url|uri)$`), "https://example.com"},
	{regexp.MustCompile(`(?i)(host|hostname|domain|dnsname)s?$`), "example.com"},
	{regexp.MustCompile(`(?i)e-?mail$`), "jane@example.com"},
	{regexp.MustCompile(`(?i)image$`), "example.com/example:v1"},
	{regexp.MustCompile(`(?i)path$`), "/example"},
	{regexp.MustCompile(`(?i)version$`), "v1"},
	{regexp.MustCompile(`(?i)schedule$|^cron`), "0 3 * * *"},
}

// text returns a string: one of a name, or one that many patterns match.
func text(s *v1.JSONSchemaProps, name string) string {
	if v := ofFormat(s.Format); v != "" {
		return v
	}
	var candidates []string
	for _, n := range named {
		if n.name.MatchString(name) {
			candidates = append(candidates, n.text)
		}
	}
	candidates = append(candidates,
		"example", strings.ToLower(name), "example.com", "https://example.com", "/", "1", "10s", "1h0m0s", "v1", "v1.0.0", "a", "A", "*", "Example", "EXAMPLE",
		"example.com/example", "https://example.com/a", "example:v1", "sha256:"+strings.Repeat("0", 64), "192.0.2.1", "192.0.2.0/24", "2026-01-01T00:00:00Z", "10", "1Gi", "0.5", "")
	for _, c := range candidates {
		if s.MinLength != nil {
			for c != "" && int64(len(c)) < *s.MinLength {
				c += c[len(c)-1:]
			}
		}
		if s.MinLength != nil && int64(len(c)) < *s.MinLength || s.MaxLength != nil && int64(len(c)) > *s.MaxLength {
			continue
		}
		if ok, err := regexp.MatchString(s.Pattern, c); err == nil && ok {
			return c
		}
	}
	return candidates[0]
}
