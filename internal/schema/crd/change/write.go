package change

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Difference has the findings of one definition.
type Difference struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`
}

// CompareAll compares definitions by their names.
func CompareAll(old, now []*v1.CustomResourceDefinition) []Difference {
	var all []Difference
	find := func(list []*v1.CustomResourceDefinition, name string) *v1.CustomResourceDefinition {
		for _, d := range list {
			if d.Name == name {
				return d
			}
		}
		return nil
	}
	for _, was := range old {
		d := Difference{Name: was.Name}
		if is := find(now, was.Name); is != nil {
			d.Findings = Compare(was, is)
		} else {
			d.Findings = []Finding{{Severity: Breaking, Change: "definition-removed", What: "the definition is removed",
				Reason: "All objects of the kind are deleted with it.", WayOut: "Move the objects first."}}
		}
		all = append(all, d)
	}
	for _, is := range now {
		if find(old, is.Name) == nil {
			all = append(all, Difference{Name: is.Name, Findings: []Finding{{Severity: Safe, Change: "definition-added", What: "the definition is new"}}})
		}
	}
	return all
}

// Without returns differences without findings of a severity.
func Without(all []Difference, severity Severity) []Difference {
	out := make([]Difference, 0, len(all))
	for _, d := range all {
		kept := Difference{Name: d.Name, Findings: []Finding{}}
		for _, f := range d.Findings {
			if f.Severity != severity {
				kept.Findings = append(kept.Findings, f)
			}
		}
		out = append(out, kept)
	}
	return out
}

// Count counts the findings of a severity.
func Count(all []Difference, severity Severity) (n int) {
	for _, d := range all {
		for _, f := range d.Findings {
			if f.Severity == severity {
				n++
			}
		}
	}
	return n
}

// WriteText writes differences for people.
func WriteText(w io.Writer, all []Difference) error {
	out := bufio.NewWriter(w)
	for _, d := range all {
		if len(d.Findings) == 0 {
			continue
		}
		fmt.Fprintln(out, d.Name)
		for _, f := range d.Findings {
			at := strings.TrimSpace(f.Version + " " + f.Path)
			if at != "" {
				at += ": "
			}
			fmt.Fprintf(out, "  %-8s  %s%s\n", f.Severity, at, f.What)
			for _, more := range []string{f.Reason, f.WayOut} {
				if more != "" {
					fmt.Fprintf(out, "            %s\n", more)
				}
			}
		}
	}
	var counts []string
	for _, s := range Severities() {
		if n := Count(all, s); n > 0 || s != Safe {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	definitions := "definitions"
	if len(all) == 1 {
		definitions = "definition"
	}
	fmt.Fprintf(out, "%d %s: %s\n", len(all), definitions, strings.Join(counts, ", "))
	return out.Flush()
}

// WriteJSON writes differences for programs.
func WriteJSON(w io.Writer, all []Difference) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Definitions []Difference `json:"definitions"`
	}{all})
}
