package lsp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Kinds of completions in the protocol.
const (
	fieldItem = 5
	valueItem = 12
	kindItem  = 7
)

type cursor struct {
	TextDocument textDocument
	Position     position
}

// completion returns the fields or the values that may stand at the cursor.
func (s *Server) completion(params json.RawMessage) any {
	var at cursor
	_ = json.Unmarshal(params, &at)
	text := s.text(at.TextDocument.URI)
	lines := strings.Split(text, "\n")
	if at.Position.Line < 0 || at.Position.Line >= len(lines) {
		return []any{}
	}
	line := lines[at.Position.Line]
	column := offset(line, at.Position.Character)
	p := find(text, at.Position.Line, column)
	var items []any
	p.isText = true
	switch {
	case p.inText:
		return []any{}
	case p.inValue:
		items = s.values(p)
	default:
		items = s.fields(p)
	}
	if p.inFlow {
		p.replace(items, line, at.Position, column)
	}
	return items
}

// fields returns the fields of the object at the cursor that it does not have yet, the required ones first.
func (s *Server) fields(p *place) []any {
	out := []any{}
	n := kindNode(s.Workspace.Kinds(), p.apiVersion, p.kind)
	if n == nil {
		if len(p.path) > 0 {
			return out
		}
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			if !slices.Contains(p.present, name) {
				out = append(out, jsonObject{"label": name, "kind": fieldItem, "insertText": name + ": "})
			}
		}
		return out
	}
	if n = n.at(p.path); n == nil {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(n.schema.Properties)) {
		if slices.Contains(p.present, name) {
			continue
		}
		f := n.child(name)
		order := "1"
		if f.required {
			order = "0"
		}
		out = append(out, jsonObject{
			"label": name, "kind": fieldItem, "detail": f.typeName(), "sortText": order + name,
			"documentation": jsonObject{"kind": "markdown", "value": f.describe(name)},
			"insertText":    name + ":" + opening(f, p.indent), "insertTextMode": 1,
		})
	}
	return out
}

// replace adds edits to items in a collection, with the quotation marks that they need there. An edit replaces the whole
// word at the cursor.
func (p *place) replace(items []any, line string, at position, column int) {
	quote := ""
	if p.quote == 0 && p.start == column && column < len(line) && isQuote(line[column]) { // the word begins at the cursor
		p.quote = line[column]
	}
	if p.quote != 0 {
		quote = string(p.quote)
	} else if p.quoteKeys && p.isText {
		quote = `"`
	}
	end, behind := p.wordEnd(line, column), ""
	if !p.inValue && !strings.HasPrefix(strings.TrimLeft(line[end:], " \t"), ":") {
		behind = ": "
	}
	edit := textEdit{Range: textRange{position{at.Line, object.UTF16Len(line[:p.start])}, position{at.Line, object.UTF16Len(line[:end])}}}
	for _, one := range items {
		one := one.(jsonObject)
		text := quote + one["label"].(string) + quote
		edit.NewText = text + behind
		one["filterText"], one["textEdit"] = text, edit
	}
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }

// wordEnd returns the end of the word at the cursor, behind its closing quotation mark.
func (p *place) wordEnd(line string, column int) int {
	for i := p.start + 1; p.quote != 0 && i < len(line); i++ {
		if p.quote == '"' && line[i] == '\\' || p.quote == '\'' && strings.HasPrefix(line[i:], "''") { // escapes the next character
			i++
			continue
		}
		if line[i] != p.quote {
			continue
		}
		if i+1 == len(line) || strings.IndexByte(" \t\r:,]}", line[i+1]) >= 0 {
			return max(column, i+1)
		}
		break // the mark opens the next word: the closing one is missing
	}
	end := column
	for ; end < len(line) && strings.IndexByte(" \t\r,[]{}\"'", line[end]) < 0; end++ {
		if line[end] == ':' && (!p.inValue || end+1 == len(line) || line[end+1] == ' ') {
			break
		}
	}
	return end
}

// opening returns the text behind the colon of a new field.
func opening(n *node, indent int) string {
	margin := "\n" + strings.Repeat(" ", indent+2)
	switch {
	case n.schema.Type.Contains("array"):
		return margin + "- "
	case n.schema.Type.Contains("object") || len(n.schema.Properties) > 0:
		return margin
	default:
		return " "
	}
}

// values returns the values of the field at the cursor.
func (s *Server) values(p *place) []any {
	kinds := s.Workspace.Kinds()
	out := []any{}
	value := func(text, detail string) {
		out = append(out, jsonObject{"label": text, "kind": valueItem, "detail": detail})
	}
	if len(p.path) == 0 && p.key == "apiVersion" {
		for _, v := range apiVersions(kinds, p.kind) {
			out = append(out, jsonObject{"label": v, "kind": kindItem})
		}
		return out
	}
	if len(p.path) == 0 && p.key == "kind" {
		for _, k := range kindNames(kinds, p.apiVersion) {
			out = append(out, jsonObject{"label": k, "kind": kindItem})
		}
		return out
	}
	n := kindNode(kinds, p.apiVersion, p.kind)
	if n != nil {
		n = n.at(append(slices.Clone(p.path), p.key))
	}
	if n == nil {
		return out
	}
	p.isText = n.schema.Type.Contains("string")
	for _, v := range n.schema.Enum {
		detail := ""
		if n.schema.Default != nil && asJSON(v) == asJSON(n.schema.Default) {
			detail = "default"
		}
		value(asJSON(v), detail)
	}
	if n.schema.Type.Contains("boolean") {
		value("true", "")
		value("false", "")
	}
	if n.schema.Default != nil && len(n.schema.Enum) == 0 && !n.schema.Type.Contains("boolean") && !n.schema.Type.Contains("object") && !n.schema.Type.Contains("array") {
		value(asJSON(n.schema.Default), "default")
	}
	return out
}

// apiVersions returns the versions that have a kind, or all.
func apiVersions(kinds *resource.Set, kind string) (out []string) {
	each(kinds, func(d *resource.Definition, v *resource.Version) {
		if name := d.APIVersion(v.Name); (kind == "" || d.Kind == kind) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	slices.Sort(out)
	return out
}

// kindNames returns the kinds of a version, or all.
func kindNames(kinds *resource.Set, apiVersion string) (out []string) {
	each(kinds, func(d *resource.Definition, v *resource.Version) {
		if (apiVersion == "" || d.APIVersion(v.Name) == apiVersion) && !slices.Contains(out, d.Kind) {
			out = append(out, d.Kind)
		}
	})
	slices.Sort(out)
	return out
}

// each calls visit for each version of a kind that can be created.
func each(kinds *resource.Set, visit func(*resource.Definition, *resource.Version)) {
	if kinds == nil {
		return
	}
	for d := range kinds.All() {
		for _, v := range d.Versions {
			if v.Served && d.Allows("create") {
				visit(d, v)
			}
		}
	}
}

// hover returns the documentation of the field at the cursor.
func (s *Server) hover(params json.RawMessage) any {
	var at cursor
	_ = json.Unmarshal(params, &at)
	text := s.text(at.TextDocument.URI)
	lines := strings.Split(text, "\n")
	if at.Position.Line < 0 || at.Position.Line >= len(lines) {
		return nil
	}
	line := lines[at.Position.Line]
	p, ok := keyAt(text, at.Position.Line, offset(line, at.Position.Character))
	if !ok {
		return nil
	}
	n := kindNode(s.Workspace.Kinds(), p.apiVersion, p.kind)
	if n == nil {
		return nil
	}
	if n = n.at(p.named); n == nil {
		return nil
	}
	shown := jsonObject{"contents": jsonObject{"kind": "markdown", "value": n.describe(strings.ReplaceAll(strings.Join(p.named, "."), ".[]", "[]"))}}
	if !p.inFlow {
		start := object.UTF16Len(line[:min(p.indent, len(line))])
		shown["range"] = textRange{position{at.Position.Line, start}, position{at.Position.Line, start + object.UTF16Len(p.key)}}
	}
	return shown
}
