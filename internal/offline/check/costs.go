package check

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/crd"
)

// A Schema has the estimated maximum cost of the validation rules of a schema.
type Schema struct {
	Rules []Rule `json:"rules"`
	Cost  uint64 `json:"cost"`
	Limit uint64 `json:"limit"`
}

// A Rule is a validation rule with its estimated cost.
type Rule struct {
	Path       string `json:"path"`
	Expression string `json:"expression"`
	// Cost for one object: CostEach times Times.
	Cost     uint64 `json:"cost"`
	CostEach uint64 `json:"costEach"`
	Times    uint64 `json:"times"`
	Limit    uint64 `json:"limit"`
	// TooExpensive reports that the rule, or all rules together, may exceed the limit.
	TooExpensive bool `json:"tooExpensive,omitempty"`
	// Bounds are missing keywords. Together they would be sufficient.
	Bounds []Bound `json:"bounds,omitempty"`
}

// A Bound is a keyword to add to a schema.
type Bound struct {
	Path    string `json:"path"`
	Keyword string `json:"keyword"`
	Value   int64  `json:"value"`
}

// costsOf returns the costs of the rules of a definition.
func costsOf(definition object.Tree) (all []Schema) {
	for _, report := range crd.Costs(object.CloneTree(definition)) {
		all = append(all, costs(report))
	}
	return all
}

func costs(report *celrule.Report) Schema {
	s := Schema{Cost: report.Total, Limit: celrule.SchemaCostLimit}
	bounds := map[string][]Bound{}
	tooExpensive := map[string]bool{}
	for _, e := range report.TooExpensive() {
		path := e.Path.String()
		tooExpensive[path] = true
		for _, b := range e.Bounds(e.Limit) {
			bounds[path] = append(bounds[path], Bound{b.Path.String(), b.Keyword, b.Value})
		}
	}
	for _, e := range report.Estimates {
		path := e.Path.String()
		s.Rules = append(s.Rules, Rule{
			Path: path, Expression: e.Expression,
			Cost: e.Cost, CostEach: e.Each, Times: e.Times, Limit: e.Limit,
			TooExpensive: tooExpensive[path], Bounds: bounds[path],
		})
	}
	return s
}

func (s Schema) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "  COST\tEACH\tTIMES\tOF LIMIT\t\n")
	for _, r := range s.Rules {
		fmt.Fprintf(table, "  %d\t%d\t%d\t%s\t %s\n", r.Cost, r.CostEach, r.Times, share(r.Cost, r.Limit), r.Path)
	}
	fmt.Fprintf(table, "  %d\t\t\t%s\t all of %d expressions\n", s.Cost, share(s.Cost, s.Limit), len(s.Rules))
	_ = table.Flush() // w keeps the error
	for _, r := range s.Rules {
		switch {
		case !r.TooExpensive:
		case len(r.Bounds) == 0:
			fmt.Fprintf(w, "  to lower the cost of %s, simplify it: no missing bound is sufficient\n", r.Path)
		default:
			fmt.Fprintf(w, "  to lower the cost of %s, add\n", r.Path)
			for _, b := range r.Bounds {
				fmt.Fprintf(w, "    %s: %d to %s\n", b.Keyword, b.Value, b.Path)
			}
		}
	}
}

// share formats a cost as a part of the limit.
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
