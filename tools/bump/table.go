package main

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// The tables of Go types are in this folder: the first line of a file names the package.
const tables = "internal/builtin/rule/types"

// A row is a line of a table: the words of a field, or of the type itself.
type row struct {
	file  string
	line  int
	words []string
}

// A table has the rows of a package by type and field, as in "Pod.spec" and "Pod".
type table struct {
	file, like string
	rows       map[string]row
}

// readTables reads the tables by the short name of their package.
func readTables(t *tree) map[string]*table {
	out := map[string]*table{}
	for _, f := range t.files {
		if path.Dir(f.name) != tables {
			continue
		}
		var current *table
		n, of := 0, ""
		for line := range strings.Lines(f.data) {
			n++
			text, _, _ := strings.Cut(line, "#")
			fields := strings.Fields(text)
			switch {
			case len(fields) == 0:
			case fields[0] == "package":
				current = &table{file: f.name, rows: map[string]row{}}
				if len(fields) == 4 {
					current.like = shortName(fields[3])
				}
				out[shortName(fields[1])] = current
			case current == nil:
			case strings.HasPrefix(line, "\t"):
				current.rows[of+"."+fields[0]] = row{f.name, n, fields[1:]}
			default:
				of = fields[0]
				current.rows[of] = row{f.name, n, fields[1:]}
			}
		}
	}
	return out
}

// find returns the row of a type or field, in a table or in the one that it is like.
func find(all map[string]*table, pkg, name string) (row, bool) {
	for t := all[pkg]; t != nil; t = all[t.like] {
		if r, ok := t.rows[name]; ok {
			return r, true
		}
	}
	return row{}, false
}

// noSuchField stands in place of words for a row of a field that a type does not have.
const noSuchField = "the type has no such field"

// A want is a word that a table needs for the tags of a type or field.
type want struct{ word, exactly string }

// wants returns the words of a fact about a field of a Go type. enums has the values of types.
func wants(f fact, enum []string) (out []want) {
	list, keys, optional, omits := "", []string(nil), false, false
	for _, p := range f.parts {
		name, value, _ := strings.Cut(p, "=")
		switch name {
		case "listType", "k8s:listType":
			list = value
		case "listMapKey", "k8s:listMapKey":
			keys = append(keys, value)
		case "mapType", "structType":
			out = append(out, want{"map", value})
		case "default":
			out = append(out, want{"default", value})
		case "featureGate":
			out = append(out, want{"gate", value})
		case "optional":
			optional = true
		}
		omits = omits || strings.HasPrefix(p, "json ") && strings.Contains(p, "omit")
	}
	if list != "" {
		if slices.Sort(keys); list == "map" {
			list += "(" + strings.Join(slices.Compact(keys), ",") + ")"
		}
		out = append(out, want{"list", list})
	}
	if len(f.parts) > 0 && strings.HasPrefix(f.parts[0], "type ") && optional != omits {
		out = append(out, want{word: map[bool]string{true: "optional", false: "required"}[optional]})
	}
	if len(enum) > 0 {
		word := "enum"
		if strings.HasPrefix(f.parts[0], "type []") {
			word = "items"
		}
		out = append(out, want{word, strings.ReplaceAll(strings.Join(enum, ","), `"`, "")})
	}
	return out
}

var validations = map[string]string{
	"k8s:maxItems": "max-items", "k8s:minimum": "min", "k8s:maximum": "max", "k8s:maxBytes": "max-bytes",
	"k8s:format=k8s-short-name": "dns-label", "k8s:format=k8s-long-name": "dns-subdomain", "k8s:format=k8s-label-key": "label-key",
	"k8s:format=k8s-label-value": "label-value", "k8s:format=k8s-path-segment-name": "path-segment",
}

// validated returns the word for a tag of validation. A tag in beta is validated, and one in alpha is not.
func validated(tag string) (want, bool) {
	if strings.HasPrefix(tag, "k8s:beta(") {
		_, tag, _ = strings.Cut(tag, "=+")
	}
	if word, ok := validations[tag]; ok {
		return want{word: word}, true
	}
	name, value, _ := strings.Cut(tag, "=")
	word, ok := validations[name]
	return want{word, value}, ok
}

// differences returns the words that a row lacks, and with a minus those that it has without a tag.
func differences(r row, wanted []want) (out []string) {
	published := slices.Contains(r.words, "published")
	for _, w := range wanted {
		if w.word == "default" && !published {
			w.exactly = "" // the table has the value that objects get
		}
		i := slices.IndexFunc(r.words, func(have string) bool {
			name, value, _ := strings.Cut(have, "=")
			if name == "list" {
				value = sortedKeys(value)
			}
			return name == w.word && (w.exactly == "" || value == w.exactly)
		})
		if i < 0 {
			out = append(out, strings.TrimSuffix(w.word+"="+w.exactly, "="))
		}
	}
	for _, have := range r.words {
		name, _, _ := strings.Cut(have, "=")
		if !slices.Contains([]string{"optional", "required", "gate", "list", "map", "default"}, name) || name == "default" && !published {
			continue
		}
		if !slices.ContainsFunc(wanted, func(w want) bool { return w.word == name }) {
			out = append(out, "-"+have)
		}
	}
	return out
}

// sortedKeys returns a list type with its keys sorted.
func sortedKeys(list string) string {
	kind, keys, ok := strings.Cut(strings.TrimSuffix(list, ")"), "(")
	if !ok {
		return list
	}
	sorted := strings.Split(keys, ",")
	slices.Sort(sorted)
	return kind + "(" + strings.Join(sorted, ",") + ")"
}

// A tableCheck compares the tables with the tags of a release: those of published models, or those of validation. The
// counterpart of a tag of validation can also be a Go function.
type tableCheck struct {
	rows       map[string]*table
	types      *types
	validation bool
}

func (c tableCheck) of(r row, pkg string, f fact) []string {
	if !c.validation {
		return differences(r, wants(f, c.enumOf(pkg, f)))
	}
	var wanted []want
	for _, p := range f.parts {
		if w, ok := validated(p); ok {
			wanted = append(wanted, w)
		}
	}
	return slices.DeleteFunc(differences(r, wanted), func(word string) bool { return word[0] == '-' })
}

// differences returns the differences between tables and tags, by type and field. Those that an older release has,
// too, are decisions of ours.
func (c tableCheck) differences() map[string][]string {
	out := map[string][]string{}
	for name, f := range c.types.fields {
		pkg, field, _ := strings.Cut(name, " ")
		if c.rows[pkg] == nil || strings.HasSuffix(field, "(inline)") {
			continue
		}
		r, _ := find(c.rows, pkg, field)
		if words := c.of(r, pkg, f); len(words) > 0 {
			out[name] = words
		}
	}
	if c.validation {
		return out
	}
	for pkg, t := range c.rows {
		for field := range t.rows {
			name := pkg + " " + field
			if _, there := c.types.fields[name]; !there && strings.Contains(field, ".") {
				out[name] = []string{noSuchField}
			}
		}
	}
	return out
}

// isLocked reports whether the last specification of a gate is locked.
func isLocked(gate fact) bool {
	return slices.ContainsFunc(gate.parts, func(p string) bool { return strings.HasSuffix(p, " locked") })
}

// enumOf returns the values of the type of a field, nil for none.
func (c tableCheck) enumOf(pkg string, f fact) []string {
	of, isField := strings.CutPrefix(cmp.Or(strings.Join(f.parts[:min(1, len(f.parts))], ""), "-"), "type ")
	if !isField {
		return nil
	}
	of = strings.TrimLeft(of, "*[]")
	return c.types.enums[pkg+" "+of].parts
}

// places returns the rows that differ from the tags of the new release, and not from those of the older one.
func (r releases) places(rows map[string]*table, validation bool) (out []finding) {
	before, after := tableCheck{rows, r.before, validation}.differences(), tableCheck{rows, r.after, validation}.differences()
	for name, words := range after {
		words = slices.DeleteFunc(without(words, before[name]), func(word string) bool {
			gate, ok := strings.CutPrefix(word, "gate=")
			return ok && isLocked(r.gates[gate]) // nothing can change it
		})
		if len(words) == 0 {
			continue
		}
		pkg, field, _ := strings.Cut(name, " ")
		at := place{file: rows[pkg].file, work: field + ": " + strings.Join(words, " ")}
		if r, ok := find(rows, pkg, field); ok {
			at.file, at.line = r.file, r.line
		} else if of, _, isField := strings.Cut(field, "."); isField {
			if r, ok := find(rows, pkg, of); ok {
				at.file, at.line = r.file, r.line
			}
		}
		out = append(out, finding{name: name, places: []place{at}, words: words})
	}
	slices.SortFunc(out, func(a, b finding) int { return cmp.Compare(a.name, b.name) })
	return out
}
