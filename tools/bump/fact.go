package main

import (
	"cmp"
	"maps"
	"slices"
)

// A fact is a property of a release, such as a gate or a field of a Go type.
type fact struct {
	// parts are compared one by one: stages of a gate, tags of a field.
	parts []string
	// at is the file and line in the module.
	at string
	// code is true for parts that are lines of code. A report counts them.
	code bool
}

// facts has the facts of a section by name.
type facts map[string]fact

// A change is the difference of one fact between two releases. The old or the new fact is nil if there is none.
type change struct {
	name     string
	old, new *fact
}

// sign returns + for an added fact, - for a removed one, and ~ for a changed one.
func (c change) sign() string {
	switch {
	case c.old == nil:
		return "+"
	case c.new == nil:
		return "-"
	}
	return "~"
}

// at returns the place in the newer release that has the fact.
func (c change) at() string {
	if c.new != nil {
		return c.new.at
	}
	return c.old.at
}

// lost and gained return the parts of one release that the other lacks.
func (c change) lost() []string   { return without(partsOf(c.old), partsOf(c.new)) }
func (c change) gained() []string { return without(partsOf(c.new), partsOf(c.old)) }

func partsOf(f *fact) []string {
	if f == nil {
		return nil
	}
	return f.parts
}

// without returns the elements of a list that another one lacks. A duplicate counts.
func without(list, other []string) (out []string) {
	left := map[string]int{}
	for _, p := range other {
		left[p]++
	}
	for _, p := range list {
		if left[p]--; left[p] < 0 {
			out = append(out, p)
		}
	}
	return out
}

// compare returns the changes between two releases, sorted by name.
func compare(old, new facts) (out []change) {
	for name, f := range new {
		before, known := old[name]
		switch {
		case !known:
			out = append(out, change{name: name, new: &f})
		case !slices.Equal(before.parts, f.parts):
			out = append(out, change{name: name, old: &before, new: &f})
		}
	}
	for name, f := range old {
		if _, known := new[name]; !known {
			out = append(out, change{name: name, old: &f})
		}
	}
	slices.SortFunc(out, func(a, b change) int { return cmp.Compare(a.name, b.name) })
	return out
}

// names returns the names of facts, sorted.
func (f facts) names() []string { return slices.Sorted(maps.Keys(f)) }
