package lsp

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/anykind/anykind/internal/object"
)

// An edit in a collection replaces the word at the cursor, with its quotation marks. The cursor is |.
func TestReplace(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"the middle of a quoted key":            {`{"si|ze": 1}`, `{"new": 1}`},
		"the middle of a key":                   {`a: {si|ze: 1}`, `a: {new: 1}`},
		"the middle of a key of JSON":           {`{si|ze: 1}`, `{"new": 1}`},
		"the end of a key":                      {`a: {size|: 1}`, `a: {new: 1}`},
		"the beginning of a key":                {`a: {|size: 1}`, `a: {new: 1}`},
		"the beginning of a quoted key":         {`{|"size": 1}`, `{"new": 1}`},
		"behind a quoted key":                   {`{"size"|: 1}`, `{"new": 1}`},
		"a space before the colon":              {`{"si|ze" : 1}`, `{"new" : 1}`},
		"no space behind the colon":             {`{"si|ze":1}`, `{"new":1}`},
		"no space behind the colon of a key":    {`a: {si|ze:1}`, `a: {new:1}`},
		"a key without a value":                 {`a: {si|ze}`, `a: {new: }`},
		"a quoted key without a value":          {`{"si|ze"}`, `{"new": }`},
		"a quoted key before another one":       {`{"si|ze", "b": 1}`, `{"new": , "b": 1}`},
		"a key with a comma":                    {`{"a|b, c": 1}`, `{"new": 1}`},
		"escaped quotation marks":               {`{"a\"|b\"": 1}`, `{"new": 1}`},
		"an escaped apostrophe":                 {`a: {'a''|b''c': 1}`, `a: {'new': 1}`},
		"between apostrophes":                   {`a: {'a'|'b': 1}`, `a: {'new': 1}`},
		"no word":                               {`a: {|}`, `a: {new: }`},
		"no word between quotation marks":       {`{"|"}`, `{"new": }`},
		"an element":                            {`a: [a|b, c]`, `a: [new, c]`},
		"an element of a document":              {`[a|b, c]`, `["new", c]`},
		"the last element":                      {`a: [c, a|b]`, `a: [c, new]`},
		"a quoted element":                      {`a: ["a|b", "c"]`, `a: ["new", "c"]`},
		"a value":                               {`a: {b: S|M, c: 1}`, `a: {b: new, c: 1}`},
		"a value with a colon":                  {`a: {b: im|age:1, c: 1}`, `a: {b: new, c: 1}`},
		"a quoted value":                        {`{"a": "S|M", "b": 1}`, `{"a": "new", "b": 1}`},
		"the beginning of a value":              {`{"a": |"SM", "b": 1}`, `{"a": "new", "b": 1}`},
		"no value":                              {`{"a": |, "b": 1}`, `{"a": "new", "b": 1}`},
		"a value before a comment":              {`a: [S|M # b`, `a: [new # b`},
		"an open quotation mark":                {`{"si|`, `{"new": `},
		"an open quotation mark before a colon": {`{"si|ze: 1}`, `{"new": 1}`},
		"an open quotation mark before a value": {`{"si|ze: "x", "b": 1}`, `{"new": "x", "b": 1}`},
		"an open quotation mark before a key":   {`{"si|, "b": 1}`, `{"new": , "b": 1}`},
		"an open quotation mark at a key":       {`{"|"b": 1}`, `{"new": "b": 1}`},
		"an open quotation mark of a value":     {`{"a": "S|M, "b": 1}`, `{"a": "new", "b": 1}`},
		"an open quotation mark of an element":  {`a: ["a|b, "c"]`, `a: ["new", "c"]`},
		"an open brace":                         {"a: {si|ze\nb: 1", "a: {new: \nb: 1"},
		"another line end":                      {"{\r\n\"si|ze\": 1\r\n}", "{\r\n\"new\": 1\r\n}"},
		"a key at another line end":             {"{\r\n\"si|ze\"\r\n}", "{\r\n\"new\": \r\n}"},
		"text before the word":                  {`{"ä": "€𝄞", "si|ze": 1}`, `{"ä": "€𝄞", "new": 1}`},
		"text in the word":                      {`{"ä𝄞|ö𝄞": "€"}`, `{"new": "€"}`},
		"text in a key":                         {`a: {𝄞|𝄞ä: €}`, `a: {new: €}`},
	} {
		t.Run(name, func(t *testing.T) {
			before, after, _ := strings.Cut(tt.text, "|")
			if got := replaced(t, before, after); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// replaced returns a text after the edit of an item.
func replaced(t *testing.T, before, after string) string {
	t.Helper()
	lines := strings.Split(before+after, "\n")
	at, own := strings.Count(before, "\n"), before[strings.LastIndex(before, "\n")+1:]
	p := find(before+after, at, len(own))
	if p.isText = true; !p.inFlow || p.inText {
		t.Fatalf("in a collection: %v, in a text: %v", p.inFlow, p.inText)
	}
	one := jsonObject{"label": "new"}
	p.replace([]any{one}, lines[at], position{at, object.UTF16Len(own)}, len(own))
	edit := one["textEdit"].(textEdit)
	from, to := edit.Range.Start, edit.Range.End
	if from.Line != at || to.Line != at || from.Character > object.UTF16Len(own) || to.Character < object.UTF16Len(own) {
		t.Errorf("the cursor is not in the range %+v", edit.Range)
	}
	line := utf16.Encode([]rune(lines[at]))
	lines[at] = string(utf16.Decode(line[:from.Character])) + edit.NewText + string(utf16.Decode(line[to.Character:]))
	return strings.Join(lines, "\n")
}
