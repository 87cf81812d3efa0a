package lsp

import (
	"slices"
	"strings"
	"testing"
)

// Texts that are being edited. The cursor is |, or ^ where a text has both.
func TestFind(t *testing.T) {
	for name, tt := range map[string]struct {
		text, path, key, value string
		inValue                bool
		present                []string
	}{
		"the first line":                {"ki|", "", "ki", "", false, nil},
		"a field":                       {"kind: A\nspec:\n  si|\n  color: x", "spec", "si", "", false, []string{"color"}},
		"an empty line":                 {"kind: A\nspec:\n  a: 1\n  |\nstatus: {}", "spec", "", "", false, []string{"a"}},
		"a value":                       {"kind: A\nspec:\n  size: b|", "spec", "size", "b", true, nil},
		"behind a colon":                {"kind: A\nspec:\n  size:|", "spec", "size", "", true, nil},
		"an element":                    {"spec:\n  ports:\n  - name: x\n    po|", "spec/ports/[]", "po", "", false, []string{"name"}},
		"a new element":                 {"spec:\n  ports:\n  - name: x\n  - |", "spec/ports/[]", "", "", false, nil},
		"the first field of an element": {"spec:\n  ports:\n    - na|", "spec/ports/[]", "na", "", false, nil},
		"behind an element":             {"spec:\n  ports:\n  - name: x\n  |", "spec", "", "", false, []string{"ports"}},
		"a list in a list":              {"spec:\n  a:\n  - b:\n    - c: 1\n      |", "spec/a/[]/b/[]", "", "", false, []string{"c"}},
		"fields behind":                 {"spec:\n  |\n  b: 1\n  c:\n    d: 1\nstatus: 1", "spec", "", "", false, []string{"b", "c"}},
		"deep and back":                 {"spec:\n  a:\n    b:\n      c: 1\n  d|", "spec", "d", "", false, []string{"a"}},
		"another document":              {"spec:\n  a: 1\n---\nmetadata:\n  |", "metadata", "", "", false, nil},
		"a quoted key":                  {"metadata:\n  labels:\n    \"a/b\": x|", "metadata/labels", "a/b", "x", true, nil},
		"a comment":                     {"spec:\n  # a: 1\n  |", "spec", "", "", false, nil},
		"other line ends":               {"spec:\r\n  a: 1\r\n  |", "spec", "", "", false, []string{"a"}},
		"a field in braces":             {"kind: A\nspec: {si|", "spec", "si", "", false, nil},
		"a field in closed braces":      {"kind: A\nspec: {si|}\nstatus: {}", "spec", "si", "", false, nil},
		"braces without a text":         {"spec: {|}", "spec", "", "", false, nil},
		"a second field in braces":      {"spec: {a: 1, |, b: {c: 1}, d: x}", "spec", "", "", false, []string{"a", "b", "d"}},
		"a field before its value":      {"spec: {si|ze: 1, b: 2}", "spec", "si", "", false, []string{"b"}},
		"a value in braces":             {"spec: {size: b|, c: 1}", "spec", "size", "b", true, []string{"c"}},
		"no value in braces":            {"spec: {size: |}", "spec", "size", "", true, nil},
		"a value with a colon":          {"spec: {image: a:1|}", "spec", "image", "a:1", true, nil},
		"braces in braces":              {"spec: {a: {b: 1}, c: {d|", "spec/c", "d", "", false, nil},
		"braces in brackets":            {"spec:\n  ports: [{name: x}, {name: y, na|", "spec/ports/[]", "na", "", false, []string{"name"}},
		"brackets":                      {"spec:\n  modes: [a, b|]", "spec/modes", "[]", "b", true, nil},
		"brackets in brackets":          {"spec:\n  modes: [[a, |", "spec/modes/[]", "[]", "", true, nil},
		"an element in braces":          {"spec:\n  ports:\n  - {name: x, po|\n  - name: y", "spec/ports/[]", "po", "", false, []string{"name"}},
		"braces of several lines":       {"spec:\n  a: {\n    b: 1,\n    c|\n    d: 1,\n  }\n  e: 1", "spec/a", "c", "", false, []string{"b", "d"}},
		"braces on a line of their own": {"spec:\n  a:\n    {b|", "spec/a", "b", "", false, nil},
		"behind braces":                 {"spec:\n  a: {b: 1}\n  c|", "spec", "c", "", false, []string{"a"}},
		"behind braces of lines":        {"spec:\n  a: {\n    b: 1\n  }\n  c|", "spec", "c", "", false, []string{"a"}},
		"braces without an end":         {"spec:\n  a: {b: 1\n  c|", "spec", "c", "", false, []string{"a"}},
		"before braces":                 {"spec:\n  a|: {b: 1}", "spec", "a", "", false, nil},
		"braces in a block of text":     {"a: |-\n  {b: {\nspec: {c^", "spec", "c", "", false, nil},
		"an action of a template":       {"spec:\n  {{- if a }}\n  b: {{ c }}\n  d|", "spec", "d", "", false, []string{"b"}},
		"quoted fields in braces":       {"spec: {\"a, }\": 'it''s', 'b|", "spec", "b", "", false, []string{"a, }"}},
		"JSON":                          {"{\"kind\": \"A\", \"spec\": {\"si|", "spec", "si", "", false, nil},
		"JSON in closed quotes":         {"{\"kind\": \"A\", \"spec\": {\"si|\"}}", "spec", "si", "", false, nil},
		"JSON of several lines":         {"{\n  \"kind\": \"A\",\n  \"spec\": {\n    \"a\": [{\"b\":1}],\n    \"|\n    \"c\": 1\n  }\n}", "spec", "", "", false, []string{"a", "c"}},
		"JSON without a comma":          {"{\"spec\": {\n  \"a\": {}\n  |\n}", "spec", "", "", false, []string{"a"}},
		"a value of JSON":               {"{\"spec\": {\"size\": \"S|\", \"a\": 1}}", "spec", "size", "S", true, []string{"a"}},
		"a value without a space":       {"{\"spec\":{\"size\":|", "spec", "size", "", true, nil},
		"a field at the top of JSON":    {"{\"kind\": \"A\",\n  \"|", "", "", "", false, []string{"kind"}},
		"escaped quotation marks":       {"{\"spec\": {\"a\\\"\": 1, \"b\": \"\\\\\", |", "spec", "", "", false, []string{"a\\\"", "b"}},
		"JSON without indentation":      {"{\n\"spec\": {\n\"a\": 1,\n\"|", "spec", "", "", false, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after, ok := strings.Cut(tt.text, "^")
			if !ok {
				before, after, _ = strings.Cut(tt.text, "|")
			}
			at := strings.Count(before, "\n")
			p := find(before+after, at, len(before)-strings.LastIndex(before, "\n")-1)
			if got := strings.Join(p.path, "/"); got != tt.path || p.key != tt.key || p.value != tt.value || p.inValue != tt.inValue {
				t.Errorf("%s %q %q %v", got, p.key, p.value, p.inValue)
			}
			if slices.Sort(p.present); !slices.Equal(p.present, tt.present) {
				t.Errorf("present: %q", p.present)
			}
		})
	}
}

// There are no fields in a block of text, and where a comma or a colon is missing.
func TestFindInText(t *testing.T) {
	for _, text := range []string{
		"data:\n  a: |\n    text: 1\n    ^", "spec: {a: {b: 1} ^", "{\"a\": \"b\" ^", "{\"a\" ^", "a: [[1] ^",
	} {
		if before, after, _ := strings.Cut(text, "^"); !find(before+after, strings.Count(before, "\n"), len(before)-strings.LastIndex(before, "\n")-1).inText {
			t.Errorf("%q has fields", text)
		}
	}
}

// The kind of a document of JSON may stand behind the cursor.
func TestFindKind(t *testing.T) {
	for text, want := range map[string]string{
		"{\"spec\": {\"^\"}, \"kind\": \"A\", \"apiVersion\": \"v1\"}":                            "v1 A",
		"{\n\"apiVersion\": \"v1\",\n\"kind\": \"A\",\n\"spec\": {\"^":                            "v1 A",
		"{\"kind\": \"B\", \"apiVersion\": \"v2\"}\n{\"kind\": \"A\",\n\"apiVersion\": \"v1\", ^": "v1 A",
		"{kind: A, apiVersion: v1, spec: {a^":                                                     "v1 A",
		"apiVersion: v1\nkind: A\nspec: {kind: B, ^":                                              "v1 A",
	} {
		before, after, _ := strings.Cut(text, "^")
		p := find(before+after, strings.Count(before, "\n"), len(before)-strings.LastIndex(before, "\n")-1)
		if got := p.apiVersion + " " + p.kind; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// The field at a place is the one of the cursor, or the closest one around it.
func TestKeyAt(t *testing.T) {
	for text, want := range map[string]string{
		"spec:\n  si^ze: 1":                             "spec/size",
		"spec: {si^ze: 1}":                              "spec/size",
		"spec: {size: 1^}":                              "spec/size",
		"sp^ec: {size: 1}":                              "spec",
		"spec: {modes: [a, b^]}":                        "spec/modes",
		"spec:\n  modes: [a, b^]":                       "spec/modes",
		"spec:\n  ports: [{a: 1}, {na^me: x}]":          "spec/ports/[]/name",
		"{\"spec\": {\n  \"si^ze\": 1}}":                "spec/size",
		"{\"sp^ec\": {\n  \"size\": 1}}":                "spec",
		"{\"spec\": {\n  \"modes\": [\n    \"a^\"\n]}}": "spec/modes",
		"- ^": "",
	} {
		before, after, _ := strings.Cut(text, "^")
		p, ok := keyAt(before+after, strings.Count(before, "\n"), len(before)-strings.LastIndex(before, "\n")-1)
		got := ""
		if ok {
			got = strings.Join(p.named, "/")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("spec:\n  - a: 1\n    b", 2, 5)
	f.Add("spec: {a: [b, {'c'': 1}], # d\n  e: \"f\\\"", 1, 8)
	f.Add("{00,0{\n0]0", 1, 0)
	f.Add("{\"a\": {\"b\": [1, 2]\n}", 1, 0)
	f.Fuzz(func(_ *testing.T, text string, line, column int) {
		column = max(0, column)
		p := find(text, line, column)
		_, _ = keyAt(text, line, column)
		if lines := strings.Split(text, "\n"); p.inFlow && line >= 0 && line < len(lines) {
			p.replace(nil, lines[line], position{}, min(column, len(lines[line])))
		}
	})
}
