package merge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// longest limits a value in a line, in characters.
const longest = 60

// Text returns the JSON of a value, without escapes for HTML.
func Text(v any) string {
	if v == Absent {
		return "(absent)"
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Short returns the JSON of a value, shortened to a part of a line.
func Short(v any) string {
	text := []rune(Text(v))
	if len(text) > longest {
		return string(text[:longest-1]) + "…"
	}
	return string(text)
}

// String returns a line: the path, and the values before and after.
func (d Difference) String() string {
	path := cmp.Or(d.Path, ".")
	switch {
	case d.Before == Absent:
		return "+ " + path + ": " + Short(d.After)
	case d.After == Absent:
		return "- " + path + ": " + Short(d.Before)
	}
	return "  " + path + ": " + Short(d.Before) + " → " + Short(d.After)
}

// String returns a line with the three values.
func (c Conflict) String() string {
	return cmp.Or(c.Path, ".") + ": was " + Short(c.Before) + ", the change set " + Short(c.After) + ", is " + Short(c.Now)
}
