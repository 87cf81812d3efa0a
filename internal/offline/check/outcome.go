package check

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Troubled counts the findings with objects that the next write rejects, or that lose a field.
func Troubled(outcomes []Outcome) (n int) {
	for _, o := range outcomes {
		for _, g := range o.Groups {
			if g.What == RefusedWrite || g.What == Loses {
				n++
			}
		}
	}
	return n
}

// WriteOutcomes writes outcomes as text.
func WriteOutcomes(w io.Writer, outcomes []Outcome) error {
	out := bufio.NewWriter(w)
	for _, o := range outcomes {
		fmt.Fprintf(out, "%s: %s, %d refused on the next write", o.Definition, count(o.Objects, "object"), o.RefusedWrites)
		if o.RefusedChange > 0 {
			fmt.Fprintf(out, ", %d refused when an invalid field changes or on create", o.RefusedChange)
		}
		fmt.Fprintln(out)
		for _, g := range o.Groups {
			fmt.Fprintf(out, "  %s\n    %s\n", g.text(), g.named())
		}
	}
	return out.Flush()
}

// text describes the finding.
func (g *Group) text() string {
	switch g.What {
	case Loses:
		return fmt.Sprintf("%d lose %s", g.Objects, g.Field)
	case ChangesField:
		return fmt.Sprintf("%d get another %s", g.Objects, g.Field)
	}
	message := g.Message
	if g.Field != "" {
		message = g.Field + ": " + message
	}
	return fmt.Sprintf("%d %s: %s", g.Objects, g.What, strings.ReplaceAll(message, "\n", " "))
}

// named returns the names of the objects.
func (g *Group) named() string {
	text := strings.Join(g.Names, ", ")
	if more := g.Objects - len(g.Names); more > 0 {
		text = strings.TrimPrefix(fmt.Sprintf("%s and %d more", text, more), " ")
	}
	return text
}

// WriteOutcomesJSON writes outcomes as JSON.
func WriteOutcomesJSON(w io.Writer, outcomes []Outcome) error {
	return encodeJSON(w, struct {
		Definitions []Outcome `json:"definitions"`
	}{outcomes})
}
