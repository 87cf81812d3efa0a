package verify

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// An expectation has the ends of runs without faults.
type expectation struct {
	ends  []end           // at each Settle
	vary  map[string]bool // fields that differ between runs without faults
	steps int             // of the longest run
}

// learn adds the ends of another run without faults.
func (x *expectation) learn(ends []end, steps int) {
	x.steps = max(x.steps, steps)
	if x.ends == nil {
		x.ends = ends
		return
	}
	for i, e := range ends {
		for _, d := range compareEnds(x.ends[i], e) {
			x.vary[d.field] = true
		}
	}
}

// difference describes how an end differs from the expected one; "" if it does not.
func (x *expectation) difference(settle int, is end) string {
	if settle >= len(x.ends) {
		return ""
	}
	var out []string
	for _, d := range compareEnds(x.ends[settle], is) {
		if !x.varies(d.field) {
			out = append(out, d.String())
		}
	}
	return strings.Join(out, "\n")
}

// varies reports whether a field, or one above it, may differ.
func (x *expectation) varies(field string) bool {
	for at := field; ; {
		if x.vary[at] {
			return true
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			return false
		}
		at = at[:cut]
	}
}

// A difference is one field of an object with two values.
type difference struct {
	object, field string // field begins with the kind
	want, is      any    // nil if it is missing
}

func (d difference) String() string {
	_, path, below := strings.Cut(d.field, ".")
	switch {
	case !below && d.want == nil:
		return fmt.Sprintf("%s exists, and does not without faults", d.object)
	case !below && d.is == nil:
		return fmt.Sprintf("%s is missing", d.object)
	case d.is == nil:
		return fmt.Sprintf("%s: %s is missing; without faults it is %s", d.object, path, compact(d.want))
	case d.want == nil:
		return fmt.Sprintf("%s: %s is %s; without faults it is missing", d.object, path, compact(d.is))
	}
	return fmt.Sprintf("%s: %s is %s; without faults it is %s", d.object, path, compact(d.is), compact(d.want))
}

func compareEnds(want, is end) (all []difference) {
	keys := maps.Clone(want)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		kind, _, _ := strings.Cut(key, " ")
		compareValues(difference{key, kind, want[key], is[key]}, &all)
	}
	return all
}

func compareValues(d difference, all *[]difference) {
	want, isMap := d.want.(map[string]any)
	is, alsoMap := d.is.(map[string]any)
	if !isMap || !alsoMap {
		wants, isList := d.want.([]any)
		list, alsoList := d.is.([]any)
		if isList && alsoList && len(wants) == len(list) {
			for i := range wants {
				compareValues(difference{d.object, d.field + "[]", wants[i], list[i]}, all)
			}
			return
		}
		if !reflect.DeepEqual(d.want, d.is) {
			*all = append(*all, d)
		}
		return
	}
	names := maps.Clone(want)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		compareValues(difference{d.object, d.field + "." + name, want[name], is[name]}, all)
	}
}
