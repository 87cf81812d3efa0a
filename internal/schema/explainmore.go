package schema

import (
	"encoding/json"
	"fmt"
)

// number explains numbers. What is compared as an integer is shown as one.
func (e *explainer) number(n *node, v any, path string, r *verdict) {
	x := plainInteger
	if n.limits != nil && n.limits.numbers != nil {
		x = n.limits.numbers
	} else if n.typed != typeInteger {
		return
	}
	var faults numberFaults
	i, integer := v.(int64)
	f, _ := v.(float64)
	if integer {
		faults, f = x.ofInt(i), float64(i)
	} else {
		faults = x.ofFloat(f)
	}
	// shown returns a number and a bound of it in the form they were compared in.
	shown := func(bound float64, bad bool) (value, limit any) {
		if integer && !bad {
			return i, int64(bound)
		}
		return f, bound
	}
	if faults&outOfRange != 0 {
		r.add(e.sayWhole("Checked value must be of %s in %s", x.spelled(), path))
	}
	if faults&badMultipleBound != 0 {
		r.add(e.sayWhole("MultipleOf value must be of %s in %s", x.spelled(), path))
	}
	if faults&(multipleNotPositive|notMultiple) != 0 {
		value, factor := shown(*x.multipleOf, x.badMultiple)
		if faults&multipleNotPositive != 0 {
			r.add(e.say(path, factor, "factor MultipleOf declared for %s must be positive: %v", path, factor))
		} else {
			r.add(e.say(path, value, "%s in body should be a multiple of %v", path, factor))
		}
	}
	if faults&badMinimumBound != 0 {
		r.add(e.sayWhole("Minimum boundary value must be of %s in %s", x.spelled(), path))
	}
	if faults&tooSmall != 0 {
		value, limit := shown(*x.minimum, x.badMinimum)
		than := "greater than or equal to"
		if x.aboveMinimum {
			than = "greater than"
		}
		r.add(e.say(path, value, "%s in body should be %s %v", path, than, limit))
	}
	if faults&badMaximumBound != 0 {
		r.add(e.sayWhole("Maximum boundary value must be of %s in %s", x.spelled(), path))
	}
	if faults&tooBig != 0 {
		value, limit := shown(*x.maximum, x.badMaximum)
		than := "less than or equal to"
		if x.belowMaximum {
			than = "less than"
		}
		r.add(e.say(path, value, "%s in body should be %s %v", path, than, limit))
	}
}

// spelled is the type as messages about its range show it.
func (n *numbers) spelled() string {
	if n.format == "" {
		return fmt.Sprintf("type %s (default format)", n.typed)
	}
	return fmt.Sprintf("type %s with format %s", n.typed, n.format)
}

// junctors explains allOf, anyOf, oneOf and not. Inside them nothing is passed
// over for being unchanged.
func (e *explainer) junctors(x *limits, v any, path string) (r verdict) {
	r.score++
	if x == nil {
		return r
	}
	e.anyOf(x.anyOf, v, path, &r)
	e.oneOf(x.oneOf, v, path, &r)
	e.allOf(x.allOf, v, path, &r)
	if x.not != nil && x.not.valid(v) {
		r.add(e.sayWhole("%q must not validate the schema (not)", path))
	}
	return r
}

func (e *explainer) anyOf(alternatives []*node, v any, path string, r *verdict) {
	if len(alternatives) == 0 {
		return
	}
	var best *verdict
	for _, n := range alternatives {
		result := e.explain(n, v, path, nil)
		if len(result.faults) == 0 {
			r.merge(result)
			return
		}
		if best == nil || result.score > best.score {
			best = &result
		}
	}
	r.add(e.sayWhole("%q must validate at least one schema (anyOf)", path))
	r.merge(*best)
}

func (e *explainer) oneOf(alternatives []*node, v any, path string, r *verdict) {
	if len(alternatives) == 0 {
		return
	}
	var best, first *verdict
	valid := 0
	for _, n := range alternatives {
		result := e.explain(n, v, path, nil)
		switch {
		case len(result.faults) == 0:
			valid++
			if first == nil {
				first = &result
			}
		case valid == 0 && (best == nil || result.score > best.score):
			best = &result
		}
	}
	switch valid {
	case 0:
		r.add(e.sayWhole("%q must validate one and only one schema (oneOf). Found none valid", path))
		r.merge(*best)
	case 1:
		r.merge(*first)
	default:
		r.add(e.sayWhole("%q must validate one and only one schema (oneOf). Found %d valid alternatives", path, valid))
	}
}

func (e *explainer) allOf(all []*node, v any, path string, r *verdict) {
	if len(all) == 0 {
		return
	}
	valid := 0
	for _, n := range all {
		result := e.explain(n, v, path, nil)
		if len(result.faults) == 0 {
			valid++
		}
		r.merge(result)
	}
	switch valid {
	case len(all):
	case 0:
		r.add(e.sayWhole("%q must validate all the schemas (allOf). None validated", path))
	default:
		r.add(e.sayWhole("%q must validate all the schemas (allOf)", path))
	}
}

// spelled is a value of an enum as messages show it.
func spelled(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}
