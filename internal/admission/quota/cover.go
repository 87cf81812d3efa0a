package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A cover is what the configuration wants to be limited by some quota, and what is.
type cover struct {
	limited []limited // of the resource
	wanted  scopes
	unknown bool // nobody can tell which scopes are wanted

	names  corev1.ResourceList // that quotas limit
	scopes scopes              // of quotas, which the object is in
}

// cover returns what is wanted of a request.
func (p *Plugin) cover(r *request) cover {
	c := cover{names: corev1.ResourceList{}}
	for _, l := range p.LimitedResources {
		if l.is(r.Target.Definition.GroupResource()) {
			c.limited = append(c.limited, l)
		}
		for _, s := range l.MatchScopes {
			if in, err := r.now.InScope(s); err != nil {
				c.unknown = true
			} else if in {
				c.wanted = append(c.wanted, s)
			}
		}
	}
	return c
}

// check returns an error if the object uses something that no quota limits, although one has to, or is
// in a scope of no quota.
func (c *cover) check(r *request, used corev1.ResourceList) error {
	var names []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(used)) {
		amount := used[name]
		if _, ok := c.names[name]; !ok && amount.Sign() > 0 && c.limits(name) {
			names = append(names, name)
		}
	}
	if names != nil {
		return r.Forbidden(fmt.Errorf("insufficient quota to consume: %s", joined(names)))
	}
	var open scopes
	for _, s := range c.wanted {
		same := func(o corev1.ScopedResourceSelectorRequirement) bool { return o.ScopeName == s.ScopeName }
		if !slices.ContainsFunc(c.scopes, same) {
			open = append(open, s)
		}
	}
	if open != nil {
		return fmt.Errorf("insufficient quota to match these scopes: %v", open)
	}
	return nil
}

func (c *cover) limits(name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.limited, func(l limited) bool {
		return slices.ContainsFunc(l.MatchContains, func(part string) bool { return strings.Contains(string(name), part) })
	})
}
