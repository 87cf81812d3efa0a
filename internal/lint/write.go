package lint

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Problems counts what is wrong in all results.
func Problems(results []Result) int {
	n := 0
	for _, r := range results {
		n += len(r.Problems)
	}
	return n
}

// WriteJSON writes results for programs.
func WriteJSON(w io.Writer, results []Result) error {
	if results == nil {
		results = []Result{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Results  []Result `json:"results"`
		Problems int      `json:"problems"`
	}{results, Problems(results)})
}

// WriteText writes results for people.
func WriteText(w io.Writer, results []Result) error {
	out := bufio.NewWriter(w)
	for _, r := range results {
		verdict := "accepted"
		if len(r.Problems) > 0 {
			verdict = "refused"
		}
		fmt.Fprintf(out, "%s: %s: %s\n", r.File, r.Name, verdict)
		for _, p := range r.Problems {
			fmt.Fprintf(out, "  error: %s\n", indented(p.Message))
		}
		for _, s := range r.Schemas {
			s.write(out)
		}
	}
	return out.Flush()
}

func (s Schema) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "  COST\tEACH\tTIMES\tOF LIMIT\t\n")
	for _, r := range s.Rules {
		fmt.Fprintf(table, "  %d\t%d\t%d\t%s\t %s\n", r.Cost, r.CostEach, r.Times, share(r.Cost, r.Limit), r.Path)
	}
	fmt.Fprintf(table, "  %d\t\t\t%s\t all of %d expressions\n", s.Cost, share(s.Cost, s.Limit), len(s.Rules))
	_ = table.Flush() // w remembers its error
	for _, r := range s.Rules {
		switch {
		case !r.TooExpensive:
		case len(r.Bounds) == 0:
			fmt.Fprintf(w, "  to lower the cost of %s, simplify it: no bound that is missing would be enough\n", r.Path)
		default:
			fmt.Fprintf(w, "  to lower the cost of %s, add\n", r.Path)
			for _, b := range r.Bounds {
				fmt.Fprintf(w, "    %s: %d to %s\n", b.Keyword, b.Value, b.Path)
			}
		}
	}
}

// share says how much of a limit a cost is.
func share(cost, limit uint64) string {
	percent := 100 * float64(cost) / float64(limit)
	switch {
	case cost == 0:
		return "0%"
	case percent < 0.1:
		return "<0.1%"
	case percent < 100:
		return fmt.Sprintf("%.1f%%", percent)
	default:
		return fmt.Sprintf("%.1fx", percent/100)
	}
}

// indented keeps the lines of a message together.
func indented(message string) string { return strings.ReplaceAll(message, "\n", "\n    ") }
