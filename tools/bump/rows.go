package main

import (
	"slices"
	"strings"
)

// A block of a table has the words of a type, and those of its fields.
type block struct {
	name   string
	words  []string
	fields []field
	close  bool // no empty line before it
}

// A field of a block, or lines of comments before one.
type field struct {
	name  string // empty for a comment
	words []string
	text  string // of a comment
}

// writeRows writes the words that follow from tags into a table, and returns its text. Words that only a running server
// can confirm, such as the value of a default, are left to the report.
func writeRows(text string, changes []rowChange) string {
	head, blocks := parseBlocks(text)
	for _, c := range changes {
		of, name, isField := strings.Cut(c.field, ".")
		i := slices.IndexFunc(blocks, func(b block) bool { return b.name == of })
		words := slices.DeleteFunc(slices.Clone(c.words), func(w string) bool { return w == "default" })
		if len(words) == 0 {
			continue
		}
		if i < 0 {
			if i = slices.IndexFunc(blocks, func(b block) bool { return b.name > of }); i < 0 {
				i = len(blocks)
			}
			blocks = slices.Insert(blocks, i, block{name: of})
		}
		b := &blocks[i]
		if !isField {
			b.words = edited(b.words, words)
			continue
		}
		at := slices.IndexFunc(b.fields, func(f field) bool { return f.name == name })
		switch {
		case words[0] == noSuchField && at >= 0:
			b.fields = slices.Delete(b.fields, at, at+1)
			if len(b.words) == 0 && len(b.fields) == 0 {
				blocks = slices.Delete(blocks, i, i+1)
			}
		case words[0] == noSuchField:
		case at >= 0:
			b.fields[at].words = edited(b.fields[at].words, words)
		default:
			at = slices.IndexFunc(b.fields, func(f field) bool { return f.name > name })
			if at < 0 {
				at = len(b.fields)
			}
			b.fields = slices.Insert(b.fields, at, field{name: name, words: edited(nil, words)})
		}
	}
	out := strings.Builder{}
	out.WriteString(head)
	for _, b := range blocks {
		b.write(&out)
	}
	return out.String()
}

// A rowChange has the words that a row needs, and with a minus those that it loses.
type rowChange struct {
	field string
	words []string
}

// edited returns the words of a row after a change. A word replaces another one with its name.
func edited(row, words []string) []string {
	row = slices.Clone(row)
	for _, w := range words {
		if gone, ok := strings.CutPrefix(w, "-"); ok {
			row = slices.DeleteFunc(row, func(have string) bool {
				return have == gone || have == "gated" && strings.HasPrefix(gone, "gate=")
			})
			continue
		}
		name, _, _ := strings.Cut(w, "=")
		i := slices.IndexFunc(row, func(have string) bool { n, _, _ := strings.Cut(have, "="); return n == name })
		if i < 0 {
			row = append(row, w)
		} else {
			row[i] = w
		}
	}
	return row
}

// parseBlocks splits a table. The head is everything before the first type.
func parseBlocks(text string) (head string, blocks []block) {
	empty := false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 && len(blocks) > 0:
		case len(blocks) == 0 && (len(words) == 0 || words[0] == "package" || words[0][0] == '#'):
			head += line
		case strings.HasPrefix(line, "\t"):
			b := &blocks[len(blocks)-1]
			if words[0][0] == '#' {
				b.fields = append(b.fields, field{text: line})
			} else {
				b.fields = append(b.fields, field{name: words[0], words: words[1:]})
			}
		default:
			blocks = append(blocks, block{name: words[0], words: words[1:], close: !empty})
		}
		empty = len(words) == 0
	}
	return strings.TrimRight(head, "\n") + "\n", blocks
}

func (b block) write(out *strings.Builder) {
	if !b.close {
		out.WriteString("\n")
	}
	out.WriteString(strings.Join(append([]string{b.name}, b.words...), " ") + "\n")
	width := 0
	for _, f := range b.fields {
		width = max(width, len(f.name))
	}
	for _, f := range b.fields {
		switch {
		case f.name == "":
			out.WriteString(f.text)
		case len(f.words) == 0:
			out.WriteString("\t" + f.name + "\n")
		default:
			out.WriteString("\t" + f.name + strings.Repeat(" ", width-len(f.name)+2) + strings.Join(f.words, " ") + "\n")
		}
	}
}
