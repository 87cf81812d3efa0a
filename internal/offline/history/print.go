package history

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// maxLines limits the lines of a change.
const maxLines = 10

// who returns the user, or the manager if the user is unknown.
func (c *Change) who() string { return cmp.Or(c.User, c.Manager, "-") }

// actor returns the user, with the manager in parentheses if it has another name.
func (c *Change) actor() string {
	if c.User == "" || c.Manager == "" || c.Manager == c.User {
		return c.who()
	}
	return c.User + " (" + c.Manager + ")"
}

// action returns the verb with the subresource.
func (c *Change) action() string {
	verb := cmp.Or(c.Verb, strings.ToLower(c.Type))
	if c.Subresource != "" {
		verb += " " + c.Subresource
	}
	return verb
}

// Write writes changes, each with the fields that it set. An object that was created or deleted has no
// fields there.
func Write(out io.Writer, l *ChangeList) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.StripEscape)
	fmt.Fprintln(w, "REVISION\tTIME\tUSER\tVERB") // Flush has the error.
	for i := range l.Items {
		c := &l.Items[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Revision, clock(c.Time), c.actor(), c.action())
		if c.Before == nil || c.Object == nil || c.Type == Added || c.Type == Deleted {
			continue
		}
		for _, line := range fieldLines(Compare(c.Before, c.Object)) {
			fmt.Fprintf(w, "  \xff%s\xff\n", line) // escaped: no cells
		}
	}
	return w.Flush()
}

// fieldLines returns a line for each difference, as far as they are not too many.
func fieldLines(all []Difference) []string {
	var lines []string
	for i, d := range all {
		if i == maxLines-1 && len(all) > maxLines {
			return append(lines, fmt.Sprintf("  and %d more", len(all)-i))
		}
		lines = append(lines, d.String())
	}
	return lines
}
