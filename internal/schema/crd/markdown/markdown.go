// Package markdown writes the documentation of CustomResourceDefinitions as Markdown.
//
// For each version it lists fields with their types, required fields, defaults, bounds and rules,
// columns, subresources, and an example. It knows definitions and GitHub's Markdown. It does not
// validate the example.
package markdown

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/crd/manifest"
)

// Examples returns an example of a version of a definition, or nil.
type Examples func(d *v1.CustomResourceDefinition, version string) map[string]any

// Write writes pages of definitions, one after the other, with a list of them if there are several.
func Write(w io.Writer, all []*v1.CustomResourceDefinition, examples Examples) error {
	p := &page{Writer: bufio.NewWriter(w), examples: examples, anchors: map[string]string{}, taken: map[string]bool{}}
	if len(all) > 1 {
		p.head("kind", "resource", "versions")
		for _, d := range all {
			p.row(p.link(d.Spec.Names.Kind, d), code(d.Name), versionsOf(d))
		}
	}
	for _, d := range all {
		if err := p.definition(d); err != nil {
			return err
		}
	}
	return p.Flush()
}

// A page is being written.
type page struct {
	*bufio.Writer
	examples Examples
	anchors  map[string]string // by definition and path
	taken    map[string]bool   // anchors
	begun    bool
}

func (p *page) line(format string, args ...any) {
	if !p.begun && format == "" {
		return
	}
	p.begun = true
	fmt.Fprintf(p, format+"\n", args...)
}

// row writes a row of a table, with escaped cells.
func (p *page) row(cells ...string) {
	for i, text := range cells {
		cells[i] = strings.ReplaceAll(text, "|", `\|`)
	}
	p.line("| %s |", strings.Join(cells, " | "))
}

func (p *page) head(titles ...string) {
	p.line("")
	p.row(titles...)
	p.line("|%s", strings.Repeat(" --- |", len(titles)))
}

// link leads to a definition, or a part of it.
func (p *page) link(text string, d *v1.CustomResourceDefinition, parts ...string) string {
	return fmt.Sprintf("[%s](#%s)", text, p.anchor(d, parts...))
}

// place is where such links lead to.
func (p *page) place(d *v1.CustomResourceDefinition, parts ...string) {
	p.line("")
	p.line(`<a id="%s"></a>`, p.anchor(d, parts...))
	p.line("")
}

// anchor is the name of such a place.
func (p *page) anchor(d *v1.CustomResourceDefinition, parts ...string) string {
	of := strings.Join(append([]string{d.Name}, parts...), " ")
	if p.anchors[of] != "" {
		return p.anchors[of]
	}
	var out strings.Builder
	for _, r := range strings.ToLower(of) {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_':
			out.WriteRune(r)
		case r == '[':
			out.WriteString("-items")
		case r == '*':
			out.WriteString("-values")
		case r == '.' || r == ' ':
			out.WriteRune('-')
		}
	}
	name := out.String()
	for n := 2; p.taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", out.String(), n)
	}
	p.anchors[of], p.taken[name] = name, true
	return name
}

func versionsOf(d *v1.CustomResourceDefinition) string {
	var names []string
	for _, v := range d.Spec.Versions {
		names = append(names, code(v.Name))
	}
	return strings.Join(names, ", ")
}

func (p *page) definition(d *v1.CustomResourceDefinition) error {
	names := d.Spec.Names
	p.place(d)
	p.line("# %s", names.Kind)
	p.head("", "")
	for _, row := range []struct{ what, value string }{
		{"group", code(d.Spec.Group)}, {"resource", code(names.Plural)}, {"scope", scopeOf(d)},
		{"short names", codes(names.ShortNames)}, {"categories", codes(names.Categories)}, {"conversion", conversionOf(d)},
	} {
		if row.value != "" {
			p.row(row.what, row.value)
		}
	}
	p.head("version", "served", "storage", "")
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		deprecated := ""
		if v.Deprecated {
			deprecated = "deprecated"
			if v.DeprecationWarning != nil {
				deprecated += ": " + cell(*v.DeprecationWarning)
			}
		}
		p.row(p.link(v.Name, d, v.Name), yes(v.Served), yes(v.Storage), deprecated)
	}
	for i := range d.Spec.Versions {
		if err := p.version(d, &d.Spec.Versions[i]); err != nil {
			return err
		}
	}
	return nil
}

func scopeOf(d *v1.CustomResourceDefinition) string {
	if d.Spec.Scope == v1.NamespaceScoped {
		return "namespaced"
	}
	return "cluster"
}

func conversionOf(d *v1.CustomResourceDefinition) string {
	if c := d.Spec.Conversion; c != nil && c.Strategy == v1.WebhookConverter {
		return "by a webhook"
	}
	return ""
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func (p *page) version(d *v1.CustomResourceDefinition, v *v1.CustomResourceDefinitionVersion) error {
	p.place(d, v.Name)
	p.line("## %s %s/%s", d.Spec.Names.Kind, d.Spec.Group, v.Name)
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		p.line("")
		p.line("This version has no schema.")
		return nil
	}
	root := v.Schema.OpenAPIV3Schema
	if root.Description != "" {
		p.line("")
		p.line("%s", paragraph(root.Description))
	}
	if err := p.example(d, v); err != nil {
		return err
	}
	p.behaviour(v)
	p.object(d, v, "", root)
	return nil
}

func (p *page) example(d *v1.CustomResourceDefinition, v *v1.CustomResourceDefinitionVersion) error {
	tree := p.examples(d, v.Name)
	if tree == nil {
		return nil
	}
	var text bytes.Buffer
	if err := manifest.WriteObject(&text, tree); err != nil {
		return err
	}
	p.line("")
	p.line("```yaml")
	_, _ = p.Write(text.Bytes()) // Flush has the error
	p.line("```")
	return nil
}

// behaviour writes the properties of a version besides its fields.
func (p *page) behaviour(v *v1.CustomResourceDefinitionVersion) {
	if s := v.Subresources; s != nil {
		var all []string
		if s.Status != nil {
			all = append(all, "`status`")
		}
		if s.Scale != nil {
			paths := codes([]string{s.Scale.SpecReplicasPath, s.Scale.StatusReplicasPath})
			if s.Scale.LabelSelectorPath != nil {
				paths += ", " + code(*s.Scale.LabelSelectorPath)
			}
			all = append(all, "`scale` ("+paths+")")
		}
		if len(all) > 0 {
			p.line("")
			p.line("Subresources: %s.", strings.Join(all, ", "))
		}
	}
	if len(v.SelectableFields) > 0 {
		var all []string
		for _, f := range v.SelectableFields {
			all = append(all, strings.TrimPrefix(f.JSONPath, "."))
		}
		p.line("")
		p.line("Field selectors can select by %s.", codes(all))
	}
	if len(v.AdditionalPrinterColumns) == 0 {
		return
	}
	p.head("column of `kubectl get`", "type", "path", "")
	for _, c := range v.AdditionalPrinterColumns {
		text := cell(c.Description)
		if c.Priority > 0 {
			text = strings.TrimSpace(text + " (with `-o wide`)")
		}
		p.row(cell(c.Name), c.Type, code(c.JSONPath), text)
	}
}

// object writes the section of an object with fields, and those of nested objects.
func (p *page) object(d *v1.CustomResourceDefinition, v *v1.CustomResourceDefinitionVersion, path string, s *v1.JSONSchemaProps) {
	var below []section
	if path != "" {
		p.place(d, v.Name, path)
		p.line("### %s", code(path))
		if text := paragraph(s.Description); text != "" {
			p.line("")
			p.line("%s", text)
		}
	}
	p.rules(s)
	names := fieldsOf(s, path == "")
	if len(names) > 0 {
		p.head("field", "type", "required", "")
	}
	for _, name := range names {
		field := s.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		inner, innerAt := innermost(&field, at)
		typ := typeOf(&field)
		if len(inner.Properties) > 0 {
			typ = strings.Replace(typ, "object", p.link("object", d, v.Name, innerAt), 1)
			below = append(below, section{innerAt, inner})
		}
		required := ""
		if slices.Contains(s.Required, name) {
			required = "yes"
		}
		p.row(code(name), typ, required, description(&field, inner))
	}
	for _, b := range below {
		p.object(d, v, b.path, b.schema)
	}
}

// A section is that of an object with fields.
type section struct {
	path   string
	schema *v1.JSONSchemaProps
}

func fieldsOf(s *v1.JSONSchemaProps, root bool) []string {
	var names []string
	for name := range s.Properties {
		if !root || name != "apiVersion" && name != "kind" && name != "metadata" { // every object has these fields
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
