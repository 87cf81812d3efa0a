package resource

import "maps"

// PerVersion caches a value for each version of a Definition, so that a change of one Definition
// does not recompute the others. The zero value is ready.
type PerVersion[T any] struct{ made map[definitionVersion]T }

type definitionVersion struct {
	definition *Definition
	version    *Version
}

// Get returns the result of make for a version of a Definition, computed once.
func (p *PerVersion[T]) Get(d *Definition, v *Version, make func(*Definition, *Version) T) T {
	key := definitionVersion{d, v}
	value, ok := p.made[key]
	if !ok {
		value = make(d, v)
		if p.made == nil {
			p.made = map[definitionVersion]T{}
		}
		p.made[key] = value
	}
	return value
}

// Retain drops values of Definitions that are not in the Set.
func (p *PerVersion[T]) Retain(set *Set) {
	maps.DeleteFunc(p.made, func(k definitionVersion, _ T) bool {
		return set.Lookup(k.definition.Group, k.definition.Plural) != k.definition
	})
}

// Len returns the number of cached values.
func (p *PerVersion[T]) Len() int { return len(p.made) }
