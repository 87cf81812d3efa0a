package history

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/object/merge"
)

// maxLines limits the lines below a row.
const maxLines = 10

// userOrManager returns the user, or the manager if the user is unknown.
func (c *Change) userOrManager() string { return cmp.Or(c.User, c.Manager, "-") }

// actor returns the user, with the manager in parentheses if it has another name.
func (c *Change) actor() string {
	if c.User == "" || c.Manager == "" || c.Manager == c.User {
		return c.userOrManager()
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
	rows := []row{{cells: []string{"REVISION", "TIME", "USER", "VERB"}}}
	for i := range l.Items {
		c := &l.Items[i]
		r := row{cells: []string{c.Revision, clock(c.Time), c.actor(), c.action()}}
		if c.Before != nil && c.Object != nil && c.Type != Added && c.Type != Deleted {
			for _, d := range merge.Compare(c.Before, c.Object) {
				r.below = append(r.below, d.String())
			}
		}
		if c.Error != "" {
			r.below = append(r.below, "  "+c.Error)
		}
		rows = append(rows, r)
	}
	return writeRows(out, rows)
}

// A row is a row of a table, with lines below it.
type row struct {
	cells, below []string
}

// writeRows writes a table. A row has at most maxLines lines below it.
func writeRows(out io.Writer, rows []row) error {
	var widths []int
	for _, r := range rows {
		for i, cell := range r.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, r := range rows {
		line := ""
		for i, cell := range r.cells {
			line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
		for i, below := range r.below {
			if i == maxLines-1 && len(r.below) > maxLines {
				fmt.Fprintf(&text, "      and %d more\n", len(r.below)-i)
				break
			}
			text.WriteString("    " + below + "\n")
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// of returns the time of a change; "" if it is unknown.
func of(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " of " + clock(t)
}

// conflict returns the line of a conflict.
func (s *Step) conflict(c merge.Conflict) string {
	if s.copied {
		return cmp.Or(c.Path, ".") + ": was " + merge.Short(c.After) + ", the fork has " + merge.Short(c.Before) + ", the server has " + merge.Short(c.Now)
	}
	return c.String()
}

// WritePlan writes steps.
func WritePlan(out io.Writer, steps []*Step) {
	for _, s := range steps {
		switch action := s.Action(); {
		case len(s.Conflicts) > 0 && action == none:
			fmt.Fprintf(out, "%s: conflicts\n", s.Title())
		case action == none:
			fmt.Fprintf(out, "%s: nothing to undo\n", s.Title())
		default:
			fmt.Fprintf(out, "%s: %s\n", s.Title(), action)
		}
		for i := range s.Changes {
			c := &s.Changes[i]
			does := "undoes revision"
			if s.copied {
				does = "brings revision"
			}
			fmt.Fprintf(out, "  %s %s%s: %s, %s\n", does, c.Revision, of(c.Time), c.actor(), c.action())
		}
		for _, owner := range s.LeftOut {
			fmt.Fprintf(out, "  without its owner, which is gone: %s\n", owner)
		}
		for _, c := range s.Conflicts {
			fmt.Fprintf(out, "  conflict: %s\n", s.conflict(c))
		}
		for _, d := range s.Differences {
			fmt.Fprintf(out, "    %s\n", d)
		}
	}
}
