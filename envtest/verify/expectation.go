package verify

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// An expectation has the ends of runs without faults.
type expectation struct {
	ends []end           // at each Settle
	vary map[string]bool // fields that differ between runs without faults
	// random are the kinds of objects whose names differ between runs without faults.
	random map[string]bool
	// writes and events, by resource, are those of a run without faults, without generated names.
	writes []string
	events map[string][]string
	// withoutLease are the writes for which the program does not need a Lease.
	withoutLease map[identity]map[string]bool
}

// learn compares runs without faults.
func (x *expectation) learn(runs []*run) error {
	x.random = map[string]bool{}
	x.ends = runs[0].ends
	for _, r := range runs[1:] {
		if len(r.ends) != len(x.ends) {
			return fmt.Errorf("without faults: the scenario calls Settle %d times in one run and %d times in another", len(x.ends), len(r.ends))
		}
		for i, e := range r.ends {
			more, less := map[string]bool{}, map[string]bool{}
			for _, d := range compareEnds(x.ends[i], e) {
				more[d.field] = more[d.field] || d.want == nil
				less[d.field] = less[d.field] || d.is == nil
			}
			for kind := range more {
				x.random[kind] = x.random[kind] || more[kind] && less[kind] && !strings.Contains(kind, ".")
			}
		}
	}
	var ends []end
	for n, r := range runs {
		for i, s := range r.states {
			e := s.end(r.base, x.random)
			if n == 0 {
				ends = append(ends, e)
				continue
			}
			for _, d := range compareEnds(ends[i], e) {
				x.vary[d.field] = true
			}
		}
	}
	x.ends = ends
	x.writes, x.events = runs[0].stables(runs[0].written, x), map[string][]string{}
	for resource, events := range runs[0].events {
		x.events[resource] = runs[0].stables(events, x)
	}
	return nil
}

// differences returns the differences between an end and the expected one that count.
func (x *expectation) differences(settle int, is end) differences {
	if settle >= len(x.ends) {
		return nil
	}
	return compareEnds(x.ends[settle], is).without(x.vary)
}

// varies reports whether a field, or one above it, is among the fields.
func varies(fields map[string]bool, field string) bool {
	for at := field; ; {
		if fields[at] {
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

// A number is the value of a difference in the number of objects with generated names.
type number int

func (d difference) String() string {
	_, path, below := strings.Cut(d.field, ".")
	if n, ok := d.want.(number); ok {
		return fmt.Sprintf("%d of %s; without faults %d", d.is, d.object, n)
	}
	switch {
	case !below && d.want == nil:
		return fmt.Sprintf("%s exists; without faults it does not", d.object)
	case !below && (d.is == nil || d.is == deleted):
		return fmt.Sprintf("%s is missing", d.object)
	case d.is == nil:
		return fmt.Sprintf("%s: %s is missing; without faults it is %s", d.object, path, brief(d.want))
	case d.want == nil:
		return fmt.Sprintf("%s: %s is %s; without faults it is missing", d.object, path, brief(d.is))
	}
	return fmt.Sprintf("%s: %s is %s; without faults it is %s", d.object, path, brief(d.is), brief(d.want))
}

type differences []difference

// without leaves out the differences in fields, and in fields below them.
func (all differences) without(fields map[string]bool) differences {
	return slices.DeleteFunc(all, func(d difference) bool { return varies(fields, d.field) })
}

func (all differences) String() string {
	var out []string
	for _, d := range all {
		out = append(out, d.String())
	}
	return strings.Join(out, "\n")
}

// signature is equal for equal defects: it has the fields without their values.
func (all differences) signature() string {
	var out []string
	for _, d := range all {
		out = append(out, fmt.Sprint(d.field, " ", direction(d)))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// direction says in which way a difference goes.
func direction(d difference) string {
	want, counted := d.want.(number)
	is, _ := d.is.(number)
	switch {
	case counted && is > want, d.want == nil:
		return "more"
	case counted, d.is == nil, d.is == deleted:
		return "less"
	}
	return "other"
}

// ordinal ends the key of an object with a generated name.
var ordinal = regexp.MustCompile(`#\d+$`)

func compareEnds(want, is end) (all differences) {
	numbers := map[string][2]number{}
	for _, key := range namesIn(want, is) {
		kind := kindOf(key)
		if base := ordinal.ReplaceAllString(key, ""); base != key && (want[key] == nil || is[key] == nil) {
			numbers[base] = [2]number{countAlike(want, base), countAlike(is, base)}
			continue
		}
		compareValues(difference{key, kind, want[key], is[key]}, &all)
	}
	for _, base := range slices.Sorted(maps.Keys(numbers)) {
		all = append(all, difference{base, kindOf(base), numbers[base][0], numbers[base][1]})
	}
	slices.SortStableFunc(all, func(a, b difference) int { return cmp.Compare(a.object, b.object) })
	return all
}

// kindOf returns the kind in a key, without its group.
func kindOf(key string) string { return key[:strings.IndexAny(key+" ", " .")] }

// namesIn returns the keys of both maps, in order.
func namesIn(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// countAlike returns the number of objects with generated names that begin alike.
func countAlike(e end, base string) (n number) {
	for e[fmt.Sprintf("%s#%d", base, n+1)] != nil {
		n++
	}
	return n
}

func compareValues(d difference, all *differences) {
	want, isMap := d.want.(map[string]any)
	is, alsoMap := d.is.(map[string]any)
	if !isMap || !alsoMap {
		wants, isList := d.want.([]any)
		list, alsoList := d.is.([]any)
		if isList && alsoList {
			compareLists(d, wants, list, all)
		} else if !reflect.DeepEqual(d.want, d.is) {
			*all = append(*all, d)
		}
		return
	}
	for _, name := range namesIn(want, is) {
		compareValues(difference{d.object, d.field + "." + name, want[name], is[name]}, all)
	}
}

// compareLists compares lists of named items by the names, and others by index.
func compareLists(d difference, wants, list []any, all *differences) {
	for _, key := range []string{"type", "name"} {
		want, named := byKey(wants, key)
		is, alsoNamed := byKey(list, key)
		if !named || !alsoNamed {
			continue
		}
		for _, name := range namesIn(want, is) {
			compareValues(difference{d.object, d.field + "[" + name + "]", want[name], is[name]}, all)
		}
		return
	}
	if len(wants) != len(list) {
		*all = append(*all, d)
		return
	}
	for i := range wants {
		compareValues(difference{d.object, d.field + "[]", wants[i], list[i]}, all)
	}
}

// byKey returns the items of a list by the values of a field, if each item has another one.
func byKey(list []any, key string) (items map[string]any, ok bool) {
	items = make(map[string]any, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, ok := fields[key].(string)
		if !ok || items[name] != nil {
			return nil, false
		}
		items[name] = item
	}
	return items, true
}

// stable returns the text of a write without generated names. It is equal in all runs.
func (r *run) stable(write string, x *expectation) string {
	return r.stables([]string{write}, x)[0]
}

// stables applies stable to each text.
func (r *run) stables(texts []string, x *expectation) []string {
	n, out := namesOf(r.state.names, r.state.objects, x.random), make([]string, len(texts))
	for i, text := range texts {
		out[i] = n.text(text)
	}
	return out
}

// count returns how often a text is in a list.
func count(list []string, text string) (n int) {
	for _, one := range list {
		if one == text {
			n++
		}
	}
	return n
}
