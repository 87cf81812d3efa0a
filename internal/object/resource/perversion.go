package resource

import "maps"

// PerVersion keeps what was made of single versions of Definitions, so that a
// change of one of them is not the work of all. The zero value is ready.
type PerVersion[T any] struct{ made map[definitionVersion]T }

type definitionVersion struct {
	definition *Definition
	version    *Version
}

// Get returns what make makes of a version of a Definition, once.
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

// Retain drops what was made of Definitions that are not in the Set.
func (p *PerVersion[T]) Retain(set *Set) {
	maps.DeleteFunc(p.made, func(k definitionVersion, _ T) bool {
		return set.Lookup(k.definition.Group, k.definition.Plural) != k.definition
	})
}

// Len is how many versions something is kept of.
func (p *PerVersion[T]) Len() int { return len(p.made) }
