package resource

import (
	"cmp"
	"maps"
	"slices"
)

// With returns s without the Definitions in out and with those in in. Definitions in out that are
// not in s are ignored, and of two with one name the existing one counts. It is cheap if few of
// many change.
func (s *Set) With(out, in []*Definition) *Set {
	n := s.layer()
	touched := map[string]bool{}
	for _, d := range out {
		if n.find(name{d.Group, d.Plural}) == d {
			n.byName[name{d.Group, d.Plural}] = nil
			n.len--
			touched[d.Group] = true
		}
	}
	var added []*Definition
	for _, d := range in {
		if n.find(name{d.Group, d.Plural}) == nil {
			n.byName[name{d.Group, d.Plural}] = d
			n.len++
			added = append(added, d)
			touched[d.Group] = true
		}
	}
	for group := range touched {
		n.rebuild(group, added)
	}
	return n
}

// maxLayer is the number of Definitions in which a layer differs at most from the Set below it.
const maxLayer = 64

// layer returns a copy of s that may be changed.
func (s *Set) layer() *Set {
	n := &Set{byName: maps.Clone(s.byName), below: s.below, len: s.len, groups: slices.Clone(s.groups)}
	switch {
	case s.below == nil:
		n.byName, n.below = map[name]*Definition{}, s.byName
	case len(s.byName) > maxLayer:
		n.byName, n.below = map[name]*Definition{}, make(map[name]*Definition, s.len)
		for d := range s.All() {
			n.below[name{d.Group, d.Plural}] = d
		}
	}
	return n
}

// rebuild builds a group from its remaining Definitions and the added ones.
func (s *Set) rebuild(group string, added []*Definition) {
	var definitions []*Definition
	if i := slices.IndexFunc(s.groups, func(g *Group) bool { return g.Name == group }); i >= 0 {
		for _, d := range s.groups[i].Definitions {
			if s.find(name{d.Group, d.Plural}) == d {
				definitions = append(definitions, d)
			}
		}
		s.groups = slices.Delete(s.groups, i, i+1)
	}
	for _, d := range added {
		if d.Group == group {
			definitions = append(definitions, d)
		}
	}
	g := NewSet(definitions).Group(group)
	if g == nil {
		return
	}
	at, _ := slices.BinarySearchFunc(s.groups, g, compareGroups)
	s.groups = slices.Insert(s.groups, at, g)
}

// compareGroups compares groups in the order of discovery.
func compareGroups(a, b *Group) int {
	return cmp.Or(cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.Name, b.Name))
}

// priority returns the highest priority of the group's Definitions.
func (g *Group) priority() int {
	p := 0
	for _, d := range g.Definitions {
		p = max(p, d.GroupPriority)
	}
	return p
}
