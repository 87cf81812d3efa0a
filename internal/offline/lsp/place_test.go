package lsp

import (
	"slices"
	"strings"
	"testing"
)

// Texts that are being edited. The cursor is |.
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
	} {
		t.Run(name, func(t *testing.T) {
			before, after, _ := strings.Cut(tt.text, "|")
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
	if !find("data:\n  a: |\n    text: 1\n    ", 3, 4).inText {
		t.Error("a block of text has fields")
	}
}

func FuzzFind(f *testing.F) {
	f.Add("spec:\n  - a: 1\n    b", 2, 5)
	f.Fuzz(func(_ *testing.T, text string, line, column int) {
		find(text, line, max(0, column))
		_, _ = keyAt(text, line)
	})
}
