package rbac

import (
	"slices"
	"sync/atomic"
)

// fewGrants is the number of grants up to which a subject's grants are searched one by one.
const fewGrants = 8

// A holder has the grants of a subject in a scope, ordered by the names of their bindings.
type holder struct {
	grants []*grant
	sorted atomic.Pointer[sorted]
}

// sorted indexes many grants of a subject by their rules. It has only the first grant of each role,
// because the others add no rule.
type sorted struct {
	generation int64
	table      table[granted]
	broken     []*grant
}

// granted is a rule with the grant of its role.
type granted struct {
	*grant
	*rule
}

// add adds a grant, unless the binding already has a grant for an earlier subject.
func (h *holder) add(g *grant) {
	at := h.place(g.binding.name)
	if at < len(h.grants) && h.grants[at].binding == g.binding {
		return
	}
	h.grants = slices.Insert(h.grants, at, g)
	h.sorted.Store(nil)
}

// remove removes the grant of a binding, and reports whether no grant is left.
func (h *holder) remove(b *binding) bool {
	if at := h.place(b.name); at < len(h.grants) && h.grants[at].binding == b {
		h.grants = slices.Delete(h.grants, at, at+1)
		h.sorted.Store(nil)
	}
	return len(h.grants) == 0
}

// place returns the index of a binding's grant, or its insertion index.
func (h *holder) place(name string) int {
	if n := len(h.grants); n == 0 || h.grants[n-1].binding.name < name {
		return n // the usual case: the initial list is ordered
	}
	at, _ := slices.BinarySearchFunc(h.grants, name, func(g *grant, name string) int {
		switch {
		case g.binding.name < name:
			return -1
		case g.binding.name > name:
			return 1
		default:
			return 0
		}
	})
	return at
}

// find returns the first grant that allows the query, or nil.
func (h *holder) find(q *query, generation int64) *grant {
	if h == nil {
		return nil
	}
	if len(h.grants) <= fewGrants {
		return firstOf(h.grants, q)
	}
	found, n := h.sort(generation).table.at(q)
	var first *grant
	for _, all := range found[:n] {
		for i := range all {
			if all[i].rule.allows(q) {
				if first == nil || all[i].grant.before(first) {
					first = all[i].grant
				}
				break
			}
		}
	}
	return first
}

func firstOf(grants []*grant, q *query) *grant {
	for _, g := range grants {
		if g.binding.role.allows(q) {
			return g
		}
	}
	return nil
}

// broken appends the grants whose role is missing or unreadable.
func (h *holder) broken(to []*grant) []*grant {
	if h == nil {
		return to
	}
	if s := h.sorted.Load(); s != nil {
		return append(to, s.broken...)
	}
	return appendBroken(to, h.grants)
}

func appendBroken(to, from []*grant) []*grant {
	for _, g := range from {
		if g.binding.role.broken() {
			to = append(to, g)
		}
	}
	return to
}

// sort returns the index of the grants for a generation of roles.
func (h *holder) sort(generation int64) *sorted {
	if s := h.sorted.Load(); s != nil && s.generation == generation {
		return s
	}
	s := &sorted{generation: generation, broken: appendBroken(nil, h.grants)}
	seen := map[*role]bool{}
	for _, g := range h.grants {
		r := g.binding.role
		if r == nil || seen[r] {
			continue
		}
		seen[r] = true
		rules := r.compiled().rules
		for i := range rules {
			s.table.add(&rules[i], granted{g, &rules[i]})
		}
	}
	h.sorted.Store(s)
	return s
}
