package history

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// A Line is a line of an object as YAML, and the change that set it. By is nil if unknown.
type Line struct {
	By   *Change
	Text string
}

func (b *blamed) lines() []Line {
	if b == nil {
		return nil
	}
	return b.append(nil, "")
}

// append appends the lines of a value that stands on lines of its own.
func (b *blamed) append(all []Line, indent string) []Line {
	if len(b.fields) > 0 {
		for _, key := range slices.Sorted(maps.Keys(b.fields)) {
			e := b.fields[key]
			switch {
			case len(e.fields) > 0:
				all = append(all, Line{e.by, indent + keyLine(key)})
				all = e.append(all, indent+"  ")
			case len(e.elements) > 0:
				all = append(all, Line{e.by, indent + keyLine(key)})
				all = e.append(all, indent)
			default:
				all = appendText(all, e.by, indent, object.Tree{key: e.value})
			}
		}
		return all
	}
	if len(b.elements) == 0 {
		return appendText(all, b.by, indent, b.value)
	}
	for _, e := range b.elements {
		first := len(all)
		if len(e.fields) == 0 && len(e.elements) == 0 {
			all = appendText(all, e.by, indent, []any{e.value})
			continue
		}
		all = e.append(all, indent+"  ")
		all[first].Text = indent + "- " + all[first].Text[len(indent)+2:]
	}
	return all
}

// keyLine returns the line of a key with a value below it.
func keyLine(key string) string {
	text := marshal(object.Tree{key: nil})
	return strings.TrimSuffix(text, " null\n")
}

func appendText(all []Line, by *Change, indent string, value any) []Line {
	for line := range strings.Lines(marshal(value)) {
		text := strings.TrimSuffix(line, "\n")
		if text != "" {
			text = indent + text
		}
		all = append(all, Line{by, text})
	}
	return all
}

func marshal(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		return err.Error() + "\n" // a tree has YAML
	}
	return string(text)
}

// WriteBlame writes lines with the revision, the user and the time of their changes.
func WriteBlame(out io.Writer, lines []Line) error {
	revision, user := 1, 1
	for _, l := range lines {
		if l.By != nil {
			revision, user = max(revision, len(l.By.Revision)), max(user, utf8.RuneCountInString(tail(l.By.userOrManager())))
		}
	}
	for _, l := range lines {
		r, u, t := "^", "", ""
		if l.By != nil {
			r, u, t = l.By.Revision, tail(l.By.userOrManager()), clock(l.By.Time)
		}
		if _, err := fmt.Fprintf(out, "%*s (%-*s %*s) %s\n", revision, r, user, u, len(clock(time.Time{})), t, l.Text); err != nil {
			return err
		}
	}
	return nil
}

// widest limits the user in the margin, in characters.
const widest = 28

// tail returns the end of a name: a ServiceAccount has its own name there.
func tail(name string) string {
	if all := []rune(name); len(all) > widest {
		return "…" + string(all[len(all)-widest+1:])
	}
	return name
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
