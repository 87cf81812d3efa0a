package check

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// hostile has a character with a meaning in each output.
const hostile = "a \"b\" <c> & 'd' 100%, e: ::error::\r\n]]> \x01 é \u2028"

// hostileReport has results with such texts in all places that files or their objects determine.
func hostileReport() *Report {
	problem := Problem{Line: 3, Column: 7, Field: "spec[" + hostile + "]", Type: "FieldValueInvalid", Message: hostile}
	r := &Report{Results: []Result{
		{File: "dir, 50%/a b.yaml", Line: 1, Kind: "ConfigMap", Namespace: "default", Name: hostile, Verdict: Refused, Reason: "Invalid", Problems: []Problem{problem, problem}},
		{File: "dir, 50%/a b.yaml", Line: 9, Kind: "ConfigMap", Name: "b", Verdict: Accepted, Warnings: []Problem{problem}},
		{File: "chart/templates/<c>.yaml", Kind: "ConfigMap", Name: "c", Verdict: Unknown, Problems: []Problem{{Message: hostile}}},
		{File: "chart/templates/<c>.yaml", Line: 12, Verdict: Passed},
	}}
	r.Summary = summarize(r.Results)
	return r
}

// Findings stay lines: nothing in an object looks like a finding of its own.
func TestTextOfHostileObjects(t *testing.T) {
	var out bytes.Buffer
	if err := hostileReport().WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "dir, 50%/a b.yaml:3:7: ") && !strings.HasPrefix(line, "chart/templates/<c>.yaml: error: ") &&
			!strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "4 objects") {
			t.Errorf("a finding begins with %q", line)
		}
	}
}

// A workflow command is one line: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
func TestGitHubOfHostileObjects(t *testing.T) {
	var out bytes.Buffer
	if err := hostileReport().WriteGitHub(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 { // four findings and the summary
		t.Fatalf("%d lines, want 5:\n%s", len(lines), out.String())
	}
	var levels []string
	for _, line := range lines[:4] {
		command, message, _ := strings.Cut(strings.TrimPrefix(line, "::"), "::")
		level, properties, _ := strings.Cut(command, " ")
		levels = append(levels, level)
		values := map[string]string{}
		for property := range strings.SplitSeq(properties, ",") {
			name, value, _ := strings.Cut(property, "=")
			values[name] = unescape(value)
		}
		if file := values["file"]; file != "dir, 50%/a b.yaml" && file != "chart/templates/<c>.yaml" || values["title"] == "" {
			t.Errorf("properties %v", values)
		}
		if strings.HasPrefix(values["file"], "dir") != (values["line"] == "3" && values["col"] == "7") {
			t.Errorf("properties %v, want a line where it is known", values)
		}
		if !strings.Contains(unescape(message), hostile) {
			t.Errorf("message %q", message)
		}
	}
	if want := []string{"error", "error", "warning", "error"}; !slices.Equal(levels, want) {
		t.Errorf("levels %v, want %v", levels, want)
	}
}

// unescape reads a value of a workflow command as the runner does.
func unescape(text string) string {
	return strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",").Replace(text)
}

// SARIF 2.1.0, 3.4.3: a location is a URI reference, and 3.30.5: lines begin with 1.
func TestSARIFOfHostileObjects(t *testing.T) {
	var out bytes.Buffer
	if err := hostileReport().WriteSARIF(&out); err != nil {
		t.Fatal(err)
	}
	var got sarif
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, r := range got.Runs[0].Results {
		if !strings.Contains(strings.ReplaceAll(r.Message.Text, "\n    ", "\n"), hostile) {
			t.Errorf("message %q", r.Message.Text)
		}
		at := r.Locations[0].Physical
		if at.Region != nil && at.Region.StartLine < 1 {
			t.Errorf("line %d", at.Region.StartLine)
		}
		u, err := url.Parse(at.Artifact.URI)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, u.Path)
		if strings.Contains(at.Artifact.URI, " ") {
			t.Errorf("URI %q has a space", at.Artifact.URI)
		}
	}
	if want := []string{"dir, 50%/a b.yaml", "dir, 50%/a b.yaml", "dir, 50%/a b.yaml", "chart/templates/<c>.yaml"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
	if got := fileURI("/home/a b.yaml"); got != "file:///home/a%20b.yaml" {
		t.Errorf("%s, want a file URI", got)
	}
	if got := fileURI("a:b.yaml"); got != "./a:b.yaml" {
		t.Errorf("%s, want a relative URI", got)
	}
}

// junitSchema has the elements of junit-10.xsd of Jenkins, with their attributes and children.
func junitSchema() map[string][2][]string {
	text := []string{"type", "message"}
	return map[string][2][]string{
		"testsuites": {{"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}},
		"testsuite": {{"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
			{"testsuite", "properties", "testcase", "system-out", "system-err"}},
		"testcase":   {{"name", "assertions", "time", "classname", "status"}, {"skipped", "error", "failure", "system-out", "system-err"}},
		"failure":    {text, nil},
		"error":      {text, nil},
		"skipped":    {text, nil},
		"system-out": {},
	}
}

func TestJUnitIsValid(t *testing.T) {
	var out bytes.Buffer
	if err := hostileReport().WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	schema := junitSchema()
	d := xml.NewDecoder(&out)
	path, cases, texts := []string{}, 0, ""
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			known, ok := schema[name]
			if !ok || len(path) == 0 && name != "testsuites" || len(path) > 0 && !slices.Contains(schema[path[len(path)-1]][1], name) {
				t.Fatalf("element %s in %v", name, path)
			}
			for _, a := range token.Attr {
				if !slices.Contains(known[0], a.Name.Local) {
					t.Errorf("%s has an attribute %s", name, a.Name.Local)
				}
				texts += a.Value + "\n"
			}
			if name == "testcase" {
				cases++
			}
			path = append(path, name)
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			texts += string(token)
		}
	}
	if cases != 4 {
		t.Errorf("%d tests, want 4", cases)
	}
	if n := strings.Count(texts, strings.ReplaceAll(hostile, "\x01", "\uFFFD")); n < 8 {
		t.Errorf("the text is there %d times:\n%s", n, texts)
	}
}
