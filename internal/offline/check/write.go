package check

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"
)

// WriteText writes a report as text: a line for each problem, in the format of compilers, and a
// summary.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	for i := range r.Results {
		one := &r.Results[i]
		for _, p := range one.Problems {
			fmt.Fprintf(out, "%s: error: %s\n", one.at(p), one.text(p))
		}
		for _, p := range one.Warnings {
			fmt.Fprintf(out, "%s: warning: %s\n", one.at(p), one.text(p))
		}
		if len(one.Schemas) > 0 {
			fmt.Fprintf(out, "%s: %s: %s\n", one.document.where(), one.id(), one.Verdict)
		}
		for _, s := range one.Schemas {
			s.write(out)
		}
	}
	fmt.Fprintln(out, r.Summary)
	return out.Flush()
}

// at returns the place of a problem. The line is unknown in the source of a generated object.
func (r *Result) at(p Problem) string {
	if p.Line == 0 {
		return r.File
	}
	return fmt.Sprintf("%s:%d:%d", r.File, p.Line, p.Column)
}

// text describes a problem of an object.
func (r *Result) text(p Problem) string {
	text := p.line()
	if id := r.id(); id != "" {
		text = id + ": " + text
	}
	return strings.ReplaceAll(text, "\n", "\n    ")
}

// line formats a problem in one line, as kubectl does. It has the line in the output of Helm if the line in
// the template is unknown.
func (p *Problem) line() string {
	text := p.Message
	if p.Field != "" && (!strings.Contains(text, p.Field) || p.Type != "") {
		text = p.Field + ": " + text
	}
	if p.Line == 0 && p.RenderedLine > 0 {
		text += fmt.Sprintf(" (rendered line %d)", p.RenderedLine)
	}
	return text
}

// id returns the kind and name of an object.
func (r *Result) id() string {
	switch {
	case r.Kind == "":
		return r.Name
	case r.Namespace != "":
		return r.Kind + " " + r.Namespace + "/" + r.Name
	}
	return strings.TrimSpace(r.Kind + " " + r.Name)
}

// String formats the summary in one line.
func (s Summary) String() string {
	text := fmt.Sprintf("%s in %s: %d accepted, %d refused", count(s.Objects, "object"), count(s.Files, "file"), s.Accepted, s.Refused)
	for _, more := range []struct {
		n    int
		what string
	}{{s.Lossy, "lossy"}, {s.Unknown, "unknown"}, {s.PassedOver, "passed over"}, {s.Unchanged, "unchanged"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	if s.Warnings > 0 {
		text += ", " + count(s.Warnings, "warning")
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// WriteJSON writes a report as JSON.
func (r *Report) WriteJSON(w io.Writer) error { return encodeJSON(w, r) }

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteYAML writes the accepted objects as they would be stored, or in another version. It omits
// fields that only the server sets.
func (r *Report) WriteYAML(w io.Writer) error {
	first := true
	for i := range r.Results {
		one := &r.Results[i]
		t := one.shown
		if t == nil {
			t = one.stored()
		}
		if t == nil {
			continue
		}
		text, err := yaml.Marshal(plain(t))
		if err != nil {
			return err
		}
		if !first {
			text = append([]byte("---\n"), text...)
		}
		first = false
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// WriteDiff writes the changes of accepted objects: from the file, or from the stored object, to the
// object that would be stored.
func (r *Report) WriteDiff(w io.Writer) error {
	for i := range r.Results {
		one := &r.Results[i]
		stored := one.stored()
		if stored == nil {
			continue
		}
		from, was := one.File, one.document.tree
		if one.old != nil {
			from, was = "stored", one.old
		}
		now := stored
		if one.shown != nil {
			now = one.shown
		}
		a, err := yaml.Marshal(plain(was))
		if err != nil {
			return err
		}
		b, err := yaml.Marshal(plain(now))
		if err != nil {
			return err
		}
		id := one.id()
		if _, err := w.Write(diff.Diff(from+" "+id, a, "as stored "+id, b)); err != nil {
			return err
		}
	}
	return nil
}

// WriteGitHub writes a report as workflow commands of GitHub, which annotate the lines of the files.
func (r *Report) WriteGitHub(w io.Writer) error {
	out := bufio.NewWriter(w)
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for i := range r.Results {
		one := &r.Results[i]
		write := func(level string, p Problem) {
			at := property.Replace(one.File)
			if p.Line > 0 {
				at += fmt.Sprintf(",line=%d,col=%d", p.Line, p.Column)
			}
			fmt.Fprintf(out, "::%s file=%s,title=%s::%s\n", level, at, property.Replace(one.id()), message.Replace(p.line()))
		}
		for _, p := range one.Problems {
			write("error", p)
		}
		for _, p := range one.Warnings {
			write("warning", p)
		}
	}
	fmt.Fprintln(out, r.Summary)
	return out.Flush()
}
