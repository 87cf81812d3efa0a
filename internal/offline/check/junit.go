package check

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteJUnit writes a report as JUnit XML, with a suite for each file and a test for each object. It
// has the elements and attributes of Jenkins' schema:
// https://github.com/jenkinsci/xunit-plugin/blob/master/src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd/junit-10.xsd
func (r *Report) WriteJUnit(w io.Writer) error {
	var files []string
	byFile := map[string][]*Result{}
	for i := range r.Results {
		one := &r.Results[i]
		if byFile[one.File] == nil {
			files = append(files, one.File)
		}
		byFile[one.File] = append(byFile[one.File], one)
	}
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"anykind check\"", junitCounts(r.Summary), ">\n")
	for _, file := range files {
		var s Summary
		for _, one := range byFile[file] {
			s.add(one)
		}
		fmt.Fprintf(out, "  <testsuite name=\"%s\"%s skipped=\"%d\">\n", escapeXML(file), junitCounts(s), s.PassedOver)
		for _, one := range byFile[file] {
			one.writeJUnit(out)
		}
		fmt.Fprintln(out, "  </testsuite>")
	}
	fmt.Fprintln(out, "</testsuites>")
	return out.Flush()
}

func junitCounts(s Summary) string {
	return fmt.Sprintf(` tests="%d" failures="%d" errors="%d"`, s.Objects, s.Refused+s.Lossy, s.Unknown)
}

// writeJUnit writes the test of one object. The schema allows one failure with any text.
func (r *Result) writeJUnit(out io.Writer) {
	name := cmp.Or(r.id(), fmt.Sprintf("line %d", r.Line))
	fmt.Fprintf(out, "    <testcase name=\"%s\" classname=\"%s\">\n", escapeXML(name), escapeXML(r.File))
	element := map[Verdict]string{Refused: "failure", Lossy: "failure", Unknown: "error"}[r.Verdict]
	switch {
	case r.Verdict == Passed:
		fmt.Fprintln(out, "      <skipped></skipped>")
	case element != "":
		var lines []string
		for _, p := range r.Problems {
			lines = append(lines, escapeXML(r.at(p)+": "+p.line()))
		}
		first := r.Message
		if at := slices.IndexFunc(r.Problems, func(p Problem) bool { return p.Field != "" }); at >= 0 {
			first = r.Problems[at].line()
		}
		fmt.Fprintf(out, "      <%s type=\"%s\" message=\"%s\">%s</%[1]s>\n", element,
			escapeXML(cmp.Or(r.Reason, string(r.Verdict))), escapeXML(first), strings.Join(lines, "\n"))
	}
	if len(r.Warnings) > 0 {
		fmt.Fprint(out, "      <system-out>")
		for _, p := range r.Warnings {
			fmt.Fprint(out, escapeXML(r.at(p)+": warning: "+p.line()), "\n")
		}
		fmt.Fprintln(out, "</system-out>")
	}
	fmt.Fprintln(out, "    </testcase>")
}

// escapeXML escapes text for content and attributes. XML has no other control characters than these
// three, so it has a replacement character for them.
func escapeXML(text string) string {
	var out strings.Builder
	for _, c := range text {
		switch {
		case c == '\t' || c == '\n' || c == '\r' || strings.ContainsRune(`<>&"'`, c):
			fmt.Fprintf(&out, "&#%d;", c)
		case c < ' ' || c == 0xFFFE || c == 0xFFFF:
			out.WriteRune(utf8.RuneError)
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}
