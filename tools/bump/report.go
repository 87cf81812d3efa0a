package main

import (
	"fmt"
	"io"
	"strings"
)

// counts returns the numbers of lines that a function has gained and lost.
func counts(c change) string {
	if c.sign() != "~" {
		return ""
	}
	return fmt.Sprintf("(+%d-%d)", len(c.gained()), len(c.lost()))
}

// A summary counts the findings of a section.
type summary struct{ added, removed, changed, placed, places int }

func (s section) summary() (n summary) {
	for _, f := range s.findings {
		switch {
		case f.old == nil && f.new == nil:
		case f.old == nil:
			n.added++
		case f.new == nil:
			n.removed++
		default:
			n.changed++
		}
		n.places += len(f.places)
		if len(f.places) > 0 {
			n.placed++
		}
	}
	return n
}

// write writes a section: a line for each fact, its parts, and below them the places in our tree.
func (s section) write(w io.Writer) {
	n := s.summary()
	fmt.Fprintf(w, "\n## %s\n\n%s\n%d added, %d removed, %d changed; %d places in our tree.\n\n", s.title, s.note, n.added, n.removed, n.changed, n.places)
	s.writeFindings(w)
}

func (s section) writeFindings(w io.Writer) {
	for _, f := range s.findings {
		sign := " "
		if f.old != nil || f.new != nil {
			sign = f.sign()
		}
		fmt.Fprintf(w, "%s %s", sign, f.name)
		switch {
		case f.old == nil && f.new == nil:
		case f.new != nil && f.new.code:
			fmt.Fprintf(w, ": %s", strings.Join(f.new.parts, " "))
		case sign == "+" || sign == "-":
			if parts := append(partsOf(f.old), partsOf(f.new)...); len(parts) > 0 {
				fmt.Fprintf(w, ": %s", strings.Join(parts, "; "))
			}
		default:
			for _, p := range f.lost() {
				fmt.Fprintf(w, "\n    - %s", p)
			}
			for _, p := range f.gained() {
				fmt.Fprintf(w, "\n    + %s", p)
			}
		}
		fmt.Fprintln(w)
		for _, p := range f.places {
			fmt.Fprintf(w, "      %s\n", strings.TrimSpace(p.String()))
		}
	}
}

// writeReport writes a summary, and then all sections.
func writeReport(w io.Writer, from, to string, notes []string, sections []section) {
	fmt.Fprintf(w, "# Kubernetes %s to %s\n\n", from, to)
	for _, n := range notes {
		fmt.Fprintf(w, "- %s\n", n)
	}
	fmt.Fprintf(w, "\n| section | added | removed | changed | with places | places |\n| --- | --- | --- | --- | --- | --- |\n")
	var all summary
	for _, s := range sections {
		n := s.summary()
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d |\n", s.title, n.added, n.removed, n.changed, n.placed, n.places)
		all.added, all.removed, all.changed = all.added+n.added, all.removed+n.removed, all.changed+n.changed
		all.placed, all.places = all.placed+n.placed, all.places+n.places
	}
	fmt.Fprintf(w, "| all | %d | %d | %d | %d | %d |\n", all.added, all.removed, all.changed, all.placed, all.places)
	for _, s := range sections {
		s.write(w)
	}
	fmt.Fprint(w, "\n## Recorded facts\n\nWork through them from top to bottom.\n\n")
	for _, r := range records() {
		fmt.Fprintf(w, "- %s: %s\n", r.file, r.command)
	}
}
