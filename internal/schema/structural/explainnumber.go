package structural

import "fmt"

// number explains numbers. Numbers compared as integers are shown as integers.
func (e *explainer) number(n *node, v any, path string, r *outcome) {
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

// spelled returns the type in the words of messages about its range.
func (n *numbers) spelled() string {
	if n.format == "" {
		return fmt.Sprintf("type %s (default format)", n.typed)
	}
	return fmt.Sprintf("type %s with format %s", n.typed, n.format)
}
