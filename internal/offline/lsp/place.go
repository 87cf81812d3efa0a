package lsp

import (
	"regexp"
	"slices"
	"strings"
)

// A place is that of the cursor in a manifest: the fields that lead to it, and the line.
type place struct {
	// path leads to the object or list that the cursor is in: names of fields, and item for an element.
	path []string
	// key is the field of the line, or as much of it as stands before the cursor.
	key string
	// inValue is true behind the colon of the key, and value is the text there up to the cursor.
	inValue bool
	value   string
	// indent is the column of the key.
	indent int
	// present are the other fields of the same object.
	present []string
	// apiVersion and kind are those of the document.
	apiVersion, kind string
	// inText is true in a block of text, and behind a complete value in a collection. There are no fields.
	inText bool
	// isText is true for the place of a key or of a string.
	isText bool
	// inFlow is true in a collection in braces or brackets. start is the column of the word at the cursor there,
	// quote its quotation mark, or 0, and quoteKeys is true if all texts need such marks, as in JSON.
	inFlow    bool
	start     int
	quote     byte
	quoteKeys bool
	// named is the path of the field at the cursor, or of the closest one around it.
	named []string
}

// item is the step of a path into an element of a list.
const item = "[]"

// A token is a dash or a key of a line.
type token struct {
	column int
	value  int    // the column behind the dash or the colon
	key    string // "" for a dash
	rest   string // behind the colon of a key
}

var (
	keyPattern   = regexp.MustCompile(`^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#:{}\[\],&*!|>'"%@` + "`" + `-][^:#]*|-[^\s:]+)\s*:(?:\s+(.*)|)$`)
	blockPattern = regexp.MustCompile(`^[|>][-+0-9]*\s*(#.*)?$`)
)

// tokens returns the dashes and the key of a line.
func tokens(line string) (out []token) {
	column := len(line) - len(strings.TrimLeft(line, " "))
	rest := line[column:]
	for strings.HasPrefix(rest, "- ") || rest == "-" {
		skipped := len(rest) - len(strings.TrimLeft(rest[1:], " "))
		out = append(out, token{column: column, value: column + skipped})
		column, rest = column+skipped, rest[skipped:]
	}
	if m := keyPattern.FindStringSubmatch(rest); m != nil {
		out = append(out, token{column, len(line) - len(m[2]), unquoted(m[1]), m[2]})
	}
	return out
}

func unquoted(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') {
		return s[1 : len(s)-1]
	}
	return s
}

func blank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// separator reports whether a line separates documents.
func separator(line string) bool {
	return line == "---" || strings.HasPrefix(line, "--- ") || line == "..."
}

// find returns the place of a line and a column, in bytes.
func find(text string, at, column int) *place {
	lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	at = max(0, min(at, len(lines)-1))
	first, last := at, at
	for first > 0 && !separator(lines[first-1]) {
		first--
	}
	for last+1 < len(lines) && !separator(lines[last+1]) {
		last++
	}
	p := &place{}
	p.document(lines[first : last+1])
	column = min(column, len(lines[at]))
	lines = lines[:last+1]
	if f := flowAt(lines, first, at, column); f != nil {
		p.block(lines, first, f.line, f.column)
		p.enter(f, column)
	} else {
		p.block(lines, first, at, column)
	}
	return p
}

// block finds the place of a line and a column by the indentation of lines.
func (p *place) block(lines []string, first, at, column int) {
	own := lines[at][:column]
	left := tokens(own)
	dashes := left
	if n := len(left); n > 0 && left[n-1].key != "" {
		dashes = left[:n-1]
	}
	p.indent = len(own) - len(strings.TrimLeft(own, " "))
	if n := len(dashes); n > 0 {
		p.indent = dashes[n-1].value
	}
	if n := len(left); n > 0 && left[n-1].key != "" {
		p.key, p.inValue, p.value, p.indent = left[n-1].key, true, left[n-1].rest, left[n-1].column
	} else if p.indent <= len(own) {
		p.key = strings.TrimSpace(own[p.indent:])
		if strings.HasSuffix(p.key, ":") {
			p.key, p.inValue = unquoted(strings.TrimSuffix(p.key, ":")), true
		}
	}
	p.climb(lines[first:at], dashes)
	p.neighbors(lines[at+1:])
	p.named = append(p.path, p.key)
}

// document reads the fields of the document that say its kind.
func (p *place) document(lines []string) {
	for _, line := range lines {
		for _, t := range tokens(line) {
			if t.column == 0 && t.key == "apiVersion" {
				p.apiVersion = unquoted(t.rest)
			}
			if t.column == 0 && t.key == "kind" {
				p.kind = unquoted(t.rest)
			}
		}
	}
}

// climb finds the parents of the cursor in the lines before it.
func (p *place) climb(before []string, dashes []token) {
	column, inItem, siblings := p.indent, false, true
	up := func(t token) {
		switch {
		case t.key != "" && (t.column < column || inItem && t.column == column):
			if blockPattern.MatchString(t.rest) {
				p.inText = true
			}
			p.path = append(p.path, t.key)
			column, inItem, siblings = t.column, false, false
		case t.key != "" && siblings && t.column == column && !inItem:
			p.present = append(p.present, t.key)
		case t.key == "" && t.column < column:
			p.path = append(p.path, item)
			column, inItem, siblings = t.column, true, false
		}
	}
	for i := len(dashes) - 1; i >= 0; i-- {
		up(dashes[i])
	}
	for i := len(before) - 1; i >= 0 && column >= 0; i-- {
		if blank(before[i]) {
			continue
		}
		all := tokens(before[i])
		if len(all) == 0 { // a part of a text, or of a value in another notation
			continue
		}
		for k := len(all) - 1; k >= 0; k-- {
			up(all[k])
		}
	}
	slices.Reverse(p.path)
}

// neighbors finds the fields of the same object in the lines behind the cursor.
func (p *place) neighbors(behind []string) {
	for _, line := range behind {
		all := tokens(line)
		if blank(line) || len(all) == 0 {
			continue
		}
		if all[0].column < p.indent {
			return
		}
		if all[0].key != "" && all[0].column == p.indent {
			p.present = append(p.present, all[0].key)
		}
	}
}

// keyAt returns the place of a field that a line or the cursor is about, and whether there is one.
func keyAt(text string, at, column int) (*place, bool) {
	lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	if at < 0 || at >= len(lines) {
		return nil, false
	}
	if p := find(text, at, column); p.inFlow {
		return p, len(p.named) > 0
	}
	all := tokens(lines[at])
	if len(all) == 0 || all[len(all)-1].key == "" {
		return nil, false
	}
	p := find(text, at, all[len(all)-1].value)
	return p, !p.inText
}
