package celrule

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/order"
)

// mostExpensive limits the expressions named in an error about all of them.
const mostExpensive = 4

// cost adds the estimated cost of an expression.
func (c *check) cost(what string, e Estimate) {
	if e.one != nil {
		e.Each = e.one.most
	}
	e.Cost, e.Limit = multiply(e.Each, e.Times), RuleCostLimit
	if e.Cost > e.Limit && !c.AnyRuleCost {
		c.fail(field.Forbidden(e.Path, tooExpensive(what, e.Cost, e.Limit)))
	}
	c.report.Estimates = append(c.report.Estimates, e)
	if math.MaxUint64-c.report.Total < e.Cost {
		c.report.Total = math.MaxUint64
	} else {
		c.report.Total += e.Cost
	}
	if e.Cost < SchemaCostLimit/100 {
		return
	}
	c.costs = append(c.costs, e)
	order.Stable(c.costs, func(a, b Estimate) int {
		switch {
		case a.Cost > b.Cost:
			return -1
		case a.Cost < b.Cost:
			return 1
		default:
			return 0
		}
	})
	c.costs = c.costs[:min(len(c.costs), mostExpensive)]
}

// total adds an error if all expressions together exceed the limit.
func (c *check) total(at *field.Path) {
	if c.report.Total <= SchemaCostLimit {
		return
	}
	for _, e := range c.costs {
		c.fail(field.Forbidden(e.Path, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	c.fail(field.Forbidden(at, tooExpensive("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", c.report.Total, SchemaCostLimit)))
}

func tooExpensive(what string, cost, limit uint64) string {
	factor := float64(cost) / float64(limit)
	// A large factor needs no digits; rounding a small one would hide it.
	times := fmt.Sprintf("%.1fx", factor)
	if factor > 100 {
		times = "more than 100x"
	} else if factor < 1.5 {
		times = fmt.Sprintf("%fx", factor)
	}
	return fmt.Sprintf("%s exceeds budget by factor of %s (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)", what, times)
}

// TooExpensive returns the expressions beyond their limits, each with the limit it must meet. If only
// the total exceeds its limit, the most expensive expressions get proportional limits.
func (r *Report) TooExpensive() []Estimate {
	var out []Estimate
	sum := uint64(0) // of the cheap ones
	for _, e := range r.Estimates {
		if e.Cost > e.Limit {
			out = append(out, e)
		}
	}
	if r.Total <= SchemaCostLimit || len(out) > 0 {
		return out
	}
	for _, e := range r.Estimates {
		if e.Cost < SchemaCostLimit/100 {
			sum += e.Cost
		} else {
			out = append(out, e)
		}
	}
	share := float64(SchemaCostLimit-min(sum, SchemaCostLimit)) / float64(r.Total-sum)
	for i := range out {
		out[i].Limit = uint64(float64(out[i].Cost) * share)
	}
	return out
}
