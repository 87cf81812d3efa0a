// Package wire sends a request to a server exactly as written, and records the response.
//
// A Sequence is a few requests over the same objects. It does not depend on a server: values from
// earlier responses, such as a resourceVersion, are placeholders, and so is the name that separates
// one sequence from others. The package knows the transport of requests and responses, streams
// included, and nothing of their meaning.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Scope is the placeholder for the name of a sequence: in names, namespaces, labels. Its replacement
// has the same length, so it may occur in encodings with byte counts.
const Scope = "scope00000"

// Elsewhere is a namespace that both servers have from the start. Step 0 gets it, without a
// comparison.
const Elsewhere = "kube-system"

// ScopeName returns the name of the nth sequence in an attempt: a repeated sequence has a new name, so
// it finds no objects of an earlier attempt.
func ScopeName(n, attempt int) string {
	return fmt.Sprintf("s%05s%s%02s", strconv.FormatInt(int64(n%(36*36*36*36*36)), 36), "x",
		strconv.FormatInt(int64(attempt%(36*36)), 36))[:len(Scope)-1] + "z"
}

// A Step is one request.
type Step struct {
	ID       int    // later steps refer to its response by it
	Kind     string // kind of request, which groups differences
	Resource string // PLURAL.GROUP, "custom" for a custom one, "" if there is none
	Method   string
	Path     string // with the query, sent unmodified
	Header   []Field
	Body     []byte
	Gzip     bool // the body is compressed
	Watch    bool // the response is a stream, read during the later steps
	HTTP1    bool // not HTTP/2
	Around   bool // the body of a successful response is not compared
}

// A Field is one line of a header.
type Field struct{ Name, Value string }

// A Sequence is a list of requests, sent one after the other.
type Sequence struct {
	Kind    string // of the generator
	Steps   []Step
	Cleanup []Step // sent at the end in any case; the responses do not matter
}

// Without returns the sequence without one of its steps.
func (s Sequence) Without(i int) Sequence {
	steps := make([]Step, 0, len(s.Steps))
	s.Steps = append(append(steps, s.Steps[:i]...), s.Steps[i+1:]...)
	return s
}

// Refer returns the placeholder for a value at a path of the response to a step, as in Refer(2,
// "metadata.resourceVersion").
func Refer(step int, path string) string { return fmt.Sprintf("{{%d %s}}", step, path) }

var reference = regexp.MustCompile(`\{\{(\d+) ([A-Za-z0-9.]+)\}\}`)

// For returns the step for one server: with the name of the sequence, and with values from the
// responses of that server.
func (s Step) For(scope string, answers map[int]*Answer) Step {
	fill := func(text string) string {
		text = strings.ReplaceAll(text, Scope, scope)
		if !strings.Contains(text, "{{") {
			return text
		}
		return reference.ReplaceAllStringFunc(text, func(at string) string {
			m := reference.FindStringSubmatch(at)
			id, _ := strconv.Atoi(m[1])
			return answers[id].value(m[2])
		})
	}
	s.Path = fill(s.Path)
	header := make([]Field, len(s.Header))
	for i, f := range s.Header {
		header[i] = Field{f.Name, fill(f.Value)}
	}
	s.Header = header
	if bytes.Contains(s.Body, []byte(Scope)) || bytes.Contains(s.Body, []byte("{{")) {
		s.Body = []byte(fill(string(s.Body)))
	}
	return s
}

// value returns the value at a path of the body, "none" if there is none.
func (a *Answer) value(path string) string {
	if a == nil {
		return "none"
	}
	var at any
	if json.Unmarshal(a.Body, &at) != nil {
		return "none"
	}
	for name := range strings.SplitSeq(path, ".") {
		switch in := at.(type) {
		case map[string]any:
			at = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				return "none"
			}
			at = in[i]
		default:
			return "none"
		}
	}
	if text, ok := at.(string); ok {
		return text
	}
	return "none"
}

// String returns the request in a readable form.
func (s Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Method, s.Path)
	for _, f := range s.Header {
		fmt.Fprintf(&b, "\n  %s: %s", f.Name, f.Value)
	}
	if s.Gzip {
		b.WriteString("\n  (the body is compressed)")
	}
	if len(s.Body) > 0 {
		fmt.Fprintf(&b, "\n  %s", Printable(s.Body, 3000))
	}
	return b.String()
}

// Printable returns a body in a readable form, truncated if it is long.
func Printable(body []byte, most int) string {
	text := string(body)
	for _, r := range text {
		if r == '\uFFFD' || r < ' ' && r != '\n' && r != '\t' {
			text = strconv.Quote(text)
			break
		}
	}
	if len(text) > most {
		text = fmt.Sprintf("%s… (%d bytes)", text[:most], len(body))
	}
	return strings.TrimRight(text, "\n")
}
