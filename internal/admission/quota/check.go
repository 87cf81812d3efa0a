package quota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/store/stored"
)

type (
	quota  = stored.Object[corev1.ResourceQuota]
	scopes = []corev1.ScopedResourceSelectorRequirement
)

// A match is a quota that is about an object.
type match struct {
	quota
	limits corev1.ResourceList // what it limits of what such objects use; nothing, if it is about to
	delta  corev1.ResourceList // how much more of anything the object uses than before
}

// A charge is what of a quota is used once a write is made.
type charge struct {
	quota
	used corev1.ResourceList
}

// check returns what a request is charged for, or why it may not be made.
func (p *Plugin) check(ctx context.Context, r *request, quotas []quota) ([]charge, error) {
	if err := r.measure(ctx); err != nil {
		return nil, err
	}
	cover := p.cover(r)
	if cover.unknown {
		return nil, nil // as in Kubernetes
	}
	var about []match
	for _, q := range quotas {
		inside, all, err := r.inside(q)
		if err != nil {
			return nil, err
		}
		cover.scopes = append(cover.scopes, inside...)
		if !all || len(r.part(both(q.Value))) == 0 {
			continue
		}
		m := match{quota: q, limits: r.part(q.Value.Status.Hard)}
		if err := r.measurable(&m); err != nil {
			return nil, err
		}
		maps.Copy(cover.names, m.limits)
		about = append(about, m)
	}
	used := r.now.Usage()
	if err := r.nonNegative(used); err != nil {
		return nil, err
	}
	more, err := r.compare(about, used)
	if err == nil && more {
		err = cover.check(r, used)
	}
	if err != nil {
		return nil, err
	}
	return r.charge(about)
}

// inside returns the scopes of a quota in which the object is, and whether it is in all of them.
func (r *request) inside(q quota) (inside scopes, all bool, err error) {
	of := usage.Scopes(&q.Value.Spec)
	for _, s := range of {
		in, err := r.now.InScope(s)
		if err != nil {
			return nil, false, fmt.Errorf("error matching scopes of quota %s, err: error on matching scope %v: %w", q.Value.Name, s, err)
		}
		if in {
			inside = append(inside, s)
		}
	}
	return inside, len(inside) == len(of), nil
}

// part returns what a list has of what the object may use.
func (r *request) part(list corev1.ResourceList) corev1.ResourceList {
	part := corev1.ResourceList{}
	for name, amount := range list {
		if r.of.Limits(name) {
			part[name] = amount
		}
	}
	return part
}

// measurable returns an error if nobody knows how much the object uses, or how much is used already.
func (r *request) measurable(m *match) error {
	names := slices.Sorted(maps.Keys(m.limits))
	if err := r.now.Lacks(names); err != nil {
		return r.Forbidden(fmt.Errorf("failed quota: %s: %w", m.Value.Name, err))
	}
	for _, name := range names {
		if _, ok := m.Value.Status.Used[name]; !ok {
			return r.Forbidden(fmt.Errorf("status unknown for quota: %s, resources: %s", m.Value.Name, joined(names)))
		}
	}
	return nil
}

func joined(names []corev1.ResourceName) string {
	var all []string
	for _, name := range names {
		all = append(all, string(name))
	}
	return strings.Join(all, ",")
}

func (r *request) nonNegative(used corev1.ResourceList) error {
	var negative []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if amount := used[name]; amount.Sign() < 0 {
			negative = append(negative, name)
		}
	}
	if negative == nil {
		return nil
	}
	return r.Forbidden(fmt.Errorf("quota usage is negative for resource(s): %s", joined(negative)))
}

// compare finds out how much more the object uses than before, and reports whether it is anything
// that is limited or, where no quota is about the object, anything at all. An object that a quota was
// not about before uses all of it anew.
func (r *request) compare(about []match, used corev1.ResourceList) (more bool, err error) {
	anew := usage.Growth(used, nil)
	grown := anew
	if r.was != nil {
		grown = usage.Growth(used, r.was.Usage())
	}
	limited := false
	for i := range about {
		m := &about[i]
		m.delta = anew
		if r.was != nil {
			was, err := usage.Matches(r.was, usage.Scopes(&m.Value.Spec))
			if err != nil {
				return false, err
			}
			if was {
				m.delta = grown
			}
		}
		if len(m.limits) > 0 {
			limited, more = true, more || len(m.delta) > 0
		}
	}
	return more || !limited && len(grown) > 0, nil
}

// charge returns the charges, if no quota is exceeded by them. What a quota is only about to limit is
// charged, too: so whoever says that it is limited from now on need not know who writes meanwhile.
func (r *request) charge(about []match) (all []charge, err error) {
	for _, m := range about {
		asked := usage.Part(m.delta, both(m.Value))
		if len(asked) == 0 {
			continue
		}
		used := maps.Clone(m.Value.Status.Used)
		if used == nil {
			used = corev1.ResourceList{}
		}
		usage.Add(used, asked)
		if r.Target.Subresource != "status" {
			if over := exceeded(used, usage.Part(m.Value.Status.Hard, asked)); len(over) > 0 {
				return nil, r.Forbidden(fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s", m.Value.Name,
					usage.Text(usage.Part(asked, over)), usage.Text(usage.Part(m.Value.Status.Used, over)), usage.Text(over)))
			}
		}
		all = append(all, charge{m.quota, used})
	}
	return all, nil
}

// exceeded returns those limits that are less than what is used.
func exceeded(used, hard corev1.ResourceList) corev1.ResourceList {
	over := corev1.ResourceList{}
	for name, most := range hard {
		if amount := used[name]; amount.Cmp(most) > 0 {
			over[name] = most
		}
	}
	return over
}
