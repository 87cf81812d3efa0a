package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A cover compares the resources that the configuration limits with those that quotas cover.
type cover struct {
	limited []limited // entries for the resource
	wanted  scopes
	unknown bool // an error in a wanted scope

	names  corev1.ResourceList // covered by quotas
	scopes scopes              // of quotas, which match the object
}

// cover returns the limited resources and scopes of a request.
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

// check returns an error if the object uses a limited resource or matches a limited scope without a
// quota for it.
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
