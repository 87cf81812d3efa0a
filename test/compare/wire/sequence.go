// Package wire sends a request to a server exactly as written, and records the answer.
//
// A Sequence is a few requests over the same objects. It does not depend on a server: values of
// earlier answers, such as a resourceVersion, are placeholders, and so is the name that
// separates one sequence from others. The package knows how requests are sent and answers are
// received, streams included, and nothing of their meaning.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Scope stands for the name of a sequence wherever one is written: in names,
// namespaces, labels. What takes its place is as long, so that it may stand in
// encodings that count bytes.
const Scope = "scope00000"

// Elsewhere is a namespace that both servers have from the beginning. Step 0 is the
// request that reads it, of which nothing is compared.
const Elsewhere = "kube-system"

// ScopeName returns the name of the nth sequence, in an attempt: a sequence is sent
// again under another name, so that it finds nothing of what it did before.
func ScopeName(n, attempt int) string {
	return fmt.Sprintf("s%05s%s%02s", strconv.FormatInt(int64(n%(36*36*36*36*36)), 36), "x",
		strconv.FormatInt(int64(attempt%(36*36)), 36))[:len(Scope)-1] + "z"
}

// A Step is one request.
type Step struct {
	ID       int    // by which later steps refer to its answer
	Kind     string // the kind of request, by which differences are grouped
	Resource string // PLURAL.GROUP, "custom" for a custom one, "" if there is none
	Method   string
	Path     string // with the query, as it goes out
	Header   []Field
	Body     []byte
	Gzip     bool // the body is compressed on its way
	Watch    bool // the answer is a stream that is read while what follows is sent
	HTTP1    bool // not HTTP/2
	Around   bool // what a successful answer has in its body is not compared, only what is around it
}

// A Field is one line of a header.
type Field struct{ Name, Value string }

// A Sequence is requests that are sent one after the other.
type Sequence struct {
	Kind    string // of the generator
	Steps   []Step
	Cleanup []Step // sent afterwards, whatever happened; the answers do not matter
}

// Without returns the sequence without one of its steps.
func (s Sequence) Without(i int) Sequence {
	steps := make([]Step, 0, len(s.Steps))
	s.Steps = append(append(steps, s.Steps[:i]...), s.Steps[i+1:]...)
	return s
}

// Refer stands for a value at a path of the answer to a step, as in
// Refer(2, "metadata.resourceVersion").
func Refer(step int, path string) string { return fmt.Sprintf("{{%d %s}}", step, path) }

var reference = regexp.MustCompile(`\{\{(\d+) ([A-Za-z0-9.]+)\}\}`)

// For returns the step as it goes to one server: with the name of the sequence, and
// with what the answers of that server said.
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

// value returns what is at a path of the body, "none" if nothing is.
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

// String is the request as a person reads it.
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

// Printable is a body as a person reads it, cut where it is long.
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
