package markdown

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// innermost returns the schema of the innermost elements of nested lists and maps.
func innermost(s *v1.JSONSchemaProps, path string) (*v1.JSONSchemaProps, string) {
	for {
		switch {
		case s.Items != nil && s.Items.Schema != nil:
			s, path = s.Items.Schema, path+"[]"
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			s, path = s.AdditionalProperties.Schema, path+"[*]"
		default:
			return s, path
		}
	}
}

// typeOf returns the type of a value as text.
func typeOf(s *v1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.XEmbeddedResource:
		return "object of Kubernetes"
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeOf(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(s.AdditionalProperties.Schema)
	case s.Type == "" || s.Type == "object" && len(s.Properties) == 0 && kept(s):
		return "anything"
	}
	return s.Type
}

func kept(s *v1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// description returns the description of a field for a table cell. An object with a section of its own is
// described there.
func description(s, inner *v1.JSONSchemaProps) string {
	var all []string
	if text := cell(s.Description); text != "" {
		all = append(all, text)
	}
	hasSection := len(inner.Properties) > 0
	for at := s; ; at = below(at) {
		about := ""
		if at != s {
			about = "Each: "
		}
		if hasSection && at == inner {
			break
		}
		if at != s && at.Description != "" {
			all = append(all, about+cell(at.Description))
		}
		for _, text := range constraints(at) {
			all = append(all, about+text)
		}
		if at == inner {
			break
		}
	}
	if s == inner && s.Default != nil && hasSection {
		all = append(all, "Default: "+code(string(s.Default.Raw)))
	}
	if s == inner && s.Nullable && hasSection {
		all = append(all, "May be null.")
	}
	return strings.Join(all, "<br>")
}

func below(s *v1.JSONSchemaProps) *v1.JSONSchemaProps {
	if s.Items != nil && s.Items.Schema != nil {
		return s.Items.Schema
	}
	return s.AdditionalProperties.Schema
}

// constraints returns the constraints of values, in order.
func constraints(s *v1.JSONSchemaProps) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, code(plain(v)))
		}
		add("One of: %s", strings.Join(values, ", "))
	}
	if s.Default != nil {
		add("Default: %s", code(plain(*s.Default)))
	}
	if s.Format != "" {
		add("Format: %s", s.Format)
	}
	bound(&all, s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum)
	if s.MultipleOf != nil {
		add("Multiple of %s", number(*s.MultipleOf))
	}
	size(&all, "Length", s.MinLength, s.MaxLength)
	size(&all, "Items", s.MinItems, s.MaxItems)
	size(&all, "Fields", s.MinProperties, s.MaxProperties)
	if s.Pattern != "" {
		add("Pattern: %s", code(s.Pattern))
	}
	if s.Nullable {
		add("May be null.")
	}
	if s.XListType != nil && *s.XListType == "map" {
		add("Items are told apart by %s.", codes(s.XListMapKeys))
	}
	if s.XListType != nil && *s.XListType == "set" {
		add("Items are unique.")
	}
	if s.XMapType != nil && *s.XMapType == "atomic" {
		add("Applied as a whole.")
	}
	if kept(s) && len(s.Properties) > 0 {
		add("Other fields are kept.")
	}
	for _, alternative := range alternatives(s) {
		add("%s", alternative)
	}
	for _, r := range s.XValidations {
		add("Rule: %s", rule(r))
	}
	return all
}

// alternatives are the junctors of a schema.
func alternatives(s *v1.JSONSchemaProps) (all []string) {
	for _, j := range []struct {
		what     string
		branches []v1.JSONSchemaProps
	}{{"Exactly one of", s.OneOf}, {"At least one of", s.AnyOf}, {"All of", s.AllOf}} {
		if len(j.branches) == 0 || s.XIntOrString {
			continue
		}
		var texts []string
		for i := range j.branches {
			texts = append(texts, inJSON(&j.branches[i]))
		}
		all = append(all, j.what+": "+strings.Join(texts, ", "))
	}
	if s.Not != nil {
		all = append(all, "Not: "+inJSON(s.Not))
	}
	return all
}

// inJSON returns a schema without types as JSON, or its fields if it only requires them.
func inJSON(s *v1.JSONSchemaProps) string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	if required, err := json.Marshal(v1.JSONSchemaProps{Required: s.Required}); err == nil && string(required) == string(text) {
		return strings.ReplaceAll(codes(s.Required), "`, `", "` and `")
	}
	return code(string(text))
}

// plain is a value as people write it: strings without quotes.
func plain(v v1.JSON) string {
	var text string
	if json.Unmarshal(v.Raw, &text) == nil && text != "" {
		return text
	}
	return string(v.Raw)
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func bound(all *[]string, low, high *float64, above, below bool) {
	var texts []string
	if low != nil {
		texts = append(texts, map[bool]string{false: "at least ", true: "more than "}[above]+number(*low))
	}
	if high != nil {
		texts = append(texts, map[bool]string{false: "at most ", true: "less than "}[below]+number(*high))
	}
	if len(texts) > 0 {
		text := strings.Join(texts, ", ")
		*all = append(*all, strings.ToUpper(text[:1])+text[1:])
	}
}

func size(all *[]string, what string, low, high *int64) {
	switch {
	case low != nil && high != nil && *low == *high:
		*all = append(*all, fmt.Sprintf("%s: %d", what, *low))
	case low != nil && high != nil:
		*all = append(*all, fmt.Sprintf("%s: %d to %d", what, *low, *high))
	case low != nil:
		*all = append(*all, fmt.Sprintf("%s: %d or more", what, *low))
	case high != nil:
		*all = append(*all, fmt.Sprintf("%s: %d at most", what, *high))
	}
}

// rules writes the rules of an object with a section of its own.
func (p *page) rules(s *v1.JSONSchemaProps) {
	all := alternatives(s)
	if kept(s) && len(s.Properties) > 0 {
		all = append(all, "Other fields are kept.")
	}
	if s.XMapType != nil && *s.XMapType == "atomic" {
		all = append(all, "Applied as a whole.")
	}
	for _, r := range s.XValidations {
		all = append(all, "Rule: "+rule(r))
	}
	if len(all) == 0 {
		return
	}
	p.line("")
	for _, text := range all {
		p.line("- %s", text)
	}
}

// rule returns a CEL rule with its message.
func rule(r v1.ValidationRule) string {
	text := code(r.Rule)
	switch {
	case r.Message != "":
		text += ": " + cell(r.Message)
	case r.MessageExpression != "":
		text += ": " + code(r.MessageExpression)
	}
	return text
}

// cell is a text for the cell of a table, in one line: paragraphs and lists have line breaks.
func cell(text string) string {
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		item := strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ")
		switch {
		case i == 0:
		case line == "" || item:
			if !strings.HasSuffix(out.String(), "<br>") {
				out.WriteString("<br>")
			}
		case !strings.HasSuffix(out.String(), "<br>"):
			out.WriteString(" ")
		}
		out.WriteString(escape(line))
	}
	return out.String()
}

// paragraph is a text outside of tables.
func paragraph(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimRight(lines[i], " \t"), "<", "&lt;")
		if strings.HasPrefix(strings.TrimSpace(lines[i]), "#") { // it would be a heading
			lines[i] = strings.Replace(lines[i], "#", `\#`, 1)
		}
	}
	return strings.Join(lines, "\n")
}

func escape(text string) string { return strings.ReplaceAll(text, "<", "&lt;") }

// code formats a text as code.
func code(text string) string {
	if text == "" {
		return ""
	}
	text = strings.Join(strings.Fields(text), " ")
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

func codes(all []string) string {
	var out []string
	for _, text := range all {
		out = append(out, code(text))
	}
	return strings.Join(out, ", ")
}
