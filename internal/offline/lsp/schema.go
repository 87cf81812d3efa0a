package lsp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// A node is a schema in a model.
type node struct {
	model  *view.Model
	schema *spec.Schema
	// required is true for a required field.
	required bool
	doc      string // of the field, which may say more than its type
}

// kindNode returns the schema of a kind, or nil.
func kindNode(kinds *resource.Set, apiVersion, kind string) *node {
	d, v := versionOf(kinds, apiVersion, kind)
	if d == nil {
		return nil
	}
	m := v.Schema.Model()
	root := m.Schemas[m.Name]
	if root == nil {
		return nil
	}
	return (&node{model: &m, schema: root}).resolved()
}

func versionOf(kinds *resource.Set, apiVersion, kind string) (*resource.Definition, *resource.Version) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kinds == nil {
		return nil, nil
	}
	group := kinds.Group(gv.Group)
	if group == nil {
		return nil, nil
	}
	for _, d := range group.Definitions {
		if v := d.Version(gv.Version); v != nil && v.Served && d.Kind == kind {
			return d, v
		}
	}
	return nil, nil
}

// resolved follows references.
func (n *node) resolved() *node {
	for range 8 {
		ref := n.schema.Ref.String()
		if ref == "" && len(n.schema.AllOf) == 1 {
			ref = n.schema.AllOf[0].Ref.String()
		}
		if ref == "" {
			return n
		}
		next := n.model.Schemas[ref[strings.LastIndex(ref, "/")+1:]]
		if next == nil {
			return n
		}
		doc := n.doc
		if doc == "" {
			doc = n.schema.Description
		}
		n = &node{model: n.model, schema: next, required: n.required, doc: doc}
	}
	return n
}

// child returns the schema of a field, or of an element.
func (n *node) child(step string) *node {
	if step == item {
		if n.schema.Items == nil || n.schema.Items.Schema == nil {
			return nil
		}
		return (&node{model: n.model, schema: n.schema.Items.Schema}).resolved()
	}
	if p, ok := n.schema.Properties[step]; ok {
		return (&node{model: n.model, schema: &p, required: slices.Contains(n.schema.Required, step), doc: p.Description}).resolved()
	}
	if n.schema.AdditionalProperties != nil && n.schema.AdditionalProperties.Schema != nil {
		return (&node{model: n.model, schema: n.schema.AdditionalProperties.Schema}).resolved()
	}
	return nil
}

// at returns the schema at a path.
func (n *node) at(path []string) *node {
	for _, step := range path {
		if n == nil {
			return nil
		}
		n = n.child(step)
	}
	return n
}

// typeName returns the type in words.
func (n *node) typeName() string {
	s := n.schema
	switch {
	case n.is("x-kubernetes-int-or-string"):
		return "integer or string"
	case s.Type.Contains("array") && s.Items != nil && s.Items.Schema != nil:
		return "[]" + n.child(item).typeName()
	case s.Type.Contains("object") && len(s.Properties) == 0 && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + n.child("*").typeName()
	case len(s.Type) > 0:
		return strings.Join(s.Type, " or ")
	case len(s.Properties) > 0:
		return "object"
	default:
		return "any value"
	}
}

func (n *node) is(extension string) bool {
	v, _ := n.schema.Extensions[extension].(bool)
	return v
}

// describe returns the documentation of a field as Markdown.
func (n *node) describe(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** `%s`", name, n.typeName())
	if n.required {
		b.WriteString(" (required)")
	}
	b.WriteString("\n")
	doc := n.doc
	if doc == "" {
		doc = n.schema.Description
	}
	if doc != "" {
		fmt.Fprintf(&b, "\n%s\n", doc)
	}
	facts := n.facts()
	for i, f := range facts {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n", f)
	}
	return b.String()
}

// facts returns defaults, bounds and rules.
func (n *node) facts() (out []string) {
	s := n.schema
	add := func(name string, v any) { out = append(out, fmt.Sprintf("%s: `%s`", name, asJSON(v))) }
	if s.Default != nil {
		add("default", s.Default)
	}
	if len(s.Enum) > 0 {
		var all []string
		for _, v := range s.Enum {
			all = append(all, "`"+asJSON(v)+"`")
		}
		out = append(out, "one of "+strings.Join(all, ", "))
	}
	for _, b := range []struct {
		name  string
		value *float64
	}{{"minimum", s.Minimum}, {"maximum", s.Maximum}} {
		if b.value != nil {
			add(b.name, *b.value)
		}
	}
	for _, b := range []struct {
		name  string
		value *int64
	}{{"minLength", s.MinLength}, {"maxLength", s.MaxLength}, {"minItems", s.MinItems}, {"maxItems", s.MaxItems}, {"minProperties", s.MinProperties}, {"maxProperties", s.MaxProperties}} {
		if b.value != nil {
			add(b.name, *b.value)
		}
	}
	if s.Pattern != "" {
		out = append(out, "pattern: `"+s.Pattern+"`")
	}
	if s.Format != "" {
		out = append(out, "format: `"+s.Format+"`")
	}
	rules, _ := json.Marshal(s.Extensions["x-kubernetes-validations"])
	var parsed []struct{ Rule, Message string }
	_ = json.Unmarshal(rules, &parsed)
	for _, r := range parsed {
		text := "rule: `" + r.Rule + "`"
		if r.Message != "" {
			text += ": " + r.Message
		}
		out = append(out, text)
	}
	return out
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.Trim(string(data), `"`)
}
