// Package rule has the rules for the fields of built-in kinds, by Go type.
//
// Its table (types/*.txt) has a line for each field with more rules than its Go type: list and map
// types, enums, defaults, and constraints that depend on nothing else. Go functions by type have
// the other rules. A Set has both; it sets the defaults of an object, and validates a typed value
// in a walk. A Check collects the errors. The package knows no kind.
package rule

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/schema/gotype"
)

//go:embed types/*.txt
var sources embed.FS

// A line of the table has the properties of a field of a Go type, or of the type itself.
type line struct {
	mark gotype.Mark
	// fill is the default of the field, nil for none.
	fill any
	// rules validate a value, in order.
	rules []rule
	// gate is the feature gate without which the field is dropped. alone is the one with which an object
	// goes that has only fields of it.
	gate, alone gate.Name
	// whole and with are a field of the elements of a list, and the lists that refer to them: see gatedList.
	whole, with string
	// freeField and freeValue are a field of the elements of a list, and its value that needs no gate.
	freeField, freeValue string
	// quiet is true for a field of a gate that old objects have only together with another one.
	quiet bool
	// uses are the maps in an object of a gate of which one must have an entry, so that the object counts as a use.
	uses []string
	// ungated is true for a field below which no fields are dropped.
	ungated bool
	// declared is true for a field whose rules, and those below, only Declared applies.
	declared bool
	// oneOf are the members of a union, for the type itself.
	oneOf []string
}

// A rule is a word of the table that validates a value.
type rule struct {
	name     string
	check    word
	compare  transition // of Declared, in place of check
	argument string
	enum     []string // these are of the same field
	keys     []string
	gate     gate.Name
}

// A typeName names a Go type.
type typeName struct{ pkg, name string }

func nameOf(t reflect.Type) typeName { return typeName{t.PkgPath(), t.Name()} }

// table returns the table, by type and field; "" is the type itself.
var table = sync.OnceValue(func() map[typeName]map[string]line {
	out := map[typeName]map[string]line{}
	entries, err := sources.ReadDir("types")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		name := path.Join("types", e.Name())
		data, err := sources.ReadFile(name)
		if err != nil {
			panic(err)
		}
		if err := parse(out, string(data)); err != nil {
			panic(fmt.Errorf("%s: %w", name, err)) // a test parses all of them
		}
	}
	return out
})

// Marks returns the properties in the table that OpenAPI models of Go types publish.
var Marks = sync.OnceValue(func() gotype.Marks {
	out := gotype.Marks{}
	for t, fields := range table() {
		marks := map[string]gotype.Mark{}
		for name, f := range fields {
			marks[name] = f.mark
		}
		out[gotype.NameOf(t.pkg, t.name)] = marks
	}
	return out
})

// EnumOf returns the values of a field with an enum, sorted.
func EnumOf[T any](field string) []string {
	return table()[nameOf(reflect.TypeFor[T]())][field].mark.Enum
}

// parse reads a file of the table. Its first line names the package of the Go types. A line without
// indentation begins a type, and an indented one is a field of it; words follow the name. Spaces
// separate words, and a "=" separates a word from its argument. A "#" begins a comment. A package
// may be "like" another one, which was read before. Its types then have the lines of their
// namesakes there, and their own lines replace those.
func parse(into map[typeName]map[string]line, text string) error {
	var current typeName
	var like string
	own := map[typeName]map[string]bool{}
	for n, row := range strings.Split(text, "\n") {
		if i := strings.Index(row, "#"); i >= 0 {
			row = row[:i]
		}
		words, err := split(row)
		if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		indented := strings.HasPrefix(row, "\t")
		name := ""
		switch {
		case len(words) == 0:
			continue
		case words[0] == "package" && (len(words) == 2 || len(words) == 4 && words[2] == "like"):
			current.pkg, like = words[1], strings.Join(words[min(3, len(words)):], "")
			continue
		case indented && current.name == "" || current.pkg == "":
			return fmt.Errorf("line %d: a field without a type, or a type without a package", n+1)
		case indented:
			name = words[0]
		default:
			current.name = words[0]
		}
		if own[current] == nil {
			own[current], into[current] = map[string]bool{}, map[string]line{}
			maps.Copy(into[current], into[typeName{like, current.name}])
		}
		if own[current][name] {
			return fmt.Errorf("line %d: %s.%s is there twice", n+1, current.name, name)
		}
		own[current][name] = true
		f, err := parseField(words[1:])
		if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		if name != "" || len(words) > 1 {
			into[current][name] = f
		}
	}
	return nil
}

// split splits a line into words. A quoted part belongs to one word.
func split(line string) (words []string, err error) {
	line = strings.TrimSpace(line)
	for line != "" {
		end, quoted := 0, false
		for end < len(line) && (quoted || line[end] != ' ' && line[end] != '\t') {
			switch {
			case line[end] == '\\' && quoted:
				end++
			case line[end] == '"':
				quoted = !quoted
			}
			end++
		}
		if quoted {
			return nil, fmt.Errorf("%s: a quote that does not end", line)
		}
		words, line = append(words, line[:end]), strings.TrimSpace(line[end:])
	}
	return words, nil
}

func parseField(words []string) (f line, err error) {
	published := slices.Contains(words, "published")
	for _, w := range words {
		name, argument, _ := strings.Cut(w, "=")
		switch name {
		case "list":
			f.mark.List, argument, _ = strings.Cut(argument, "(")
			if argument != "" {
				f.mark.Keys = strings.Split(strings.TrimSuffix(argument, ")"), ",")
			}
		case "map":
			f.mark.Map = argument
		case "doc":
			f.mark.Doc = unquote(argument)
		case "enum":
			f.mark.Enum = values(argument)
		case "items":
			f.mark.Elements = values(argument)
		case "required":
			f.mark.Required = true
		case "optional":
			f.mark.Optional = true
		case "default":
			var value any
			if err := json.Unmarshal([]byte(argument), &value); err != nil {
				return f, fmt.Errorf("%s: %w", w, err)
			}
			if number, ok := value.(float64); ok {
				value = int64(number)
			}
			f.fill = value
			if published {
				f.mark.Default = value
			}
		case "kind":
			f.mark.Kind = argument
		case "union":
			f.mark.Union = union(argument)
		case "gate":
			f.gate = gate.Name(argument)
		case "alone":
			f.alone = gate.Name(argument)
		case "whole":
			f.whole, f.with, _ = strings.Cut(argument, ",")
		case "free":
			f.freeField, f.freeValue, _ = strings.Cut(argument, ":")
		case "uses":
			f.uses = strings.Split(argument, ",")
		case "quiet":
			f.quiet = true
		case "ungated":
			f.ungated = true
		case "declared":
			f.declared = true
		case "one-of":
			f.oneOf = strings.Split(argument, ",")
		case "published":
		default:
			r := rule{name: name, check: dictionary[name], compare: transitions[name], argument: unquote(argument)}
			if r.check == nil && r.compare == nil {
				return f, fmt.Errorf("%s: no such word", w)
			}
			f.rules = append(f.rules, r)
		}
	}
	for i := range f.rules {
		f.rules[i].enum, f.rules[i].keys, f.rules[i].gate = f.mark.Enum, f.mark.Keys, f.gate
	}
	return f, nil
}

// union parses a union with its discriminator: "kind(user:User,group:Group)". It may have no
// discriminator: "(user:User,group:Group)".
func union(text string) *gotype.Union {
	discriminator, fields, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	u := &gotype.Union{Discriminator: discriminator, Fields: map[string]string{}}
	for f := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(f, ":")
		u.Fields[name] = value
	}
	return u
}

// values returns the values of an enum, one of which may be empty.
func values(list string) []string {
	out := strings.Split(list, ",")
	for i := range out {
		out[i] = unquote(out[i])
	}
	return out
}

func unquote(s string) string {
	var out string
	if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &out) == nil {
		return out
	}
	return s
}
