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

// A match is a quota that applies to an object.
type match struct {
	quota
	limits corev1.ResourceList // of the resources that such objects use; empty if only in the spec
	delta  corev1.ResourceList // increase of the object's usage
}

// A charge is a quota with its usage after the write.
type charge struct {
	quota
	used corev1.ResourceList
}

// check returns the charges of a request, or the error that rejects it.
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

// inside returns the scopes of a quota that match the object, and whether all of them do.
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

// part returns the resources of a list that the object may use.
func (r *request) part(list corev1.ResourceList) corev1.ResourceList {
	part := corev1.ResourceList{}
	for name, amount := range list {
		if r.of.Limits(name) {
			part[name] = amount
		}
	}
	return part
}

// measurable returns an error if the usage of the object or of the quota is unknown.
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

// compare computes the increase of the object's usage for each quota. It reports whether a limited
// resource increases or, if no quota applies, any resource. If a quota did not apply to the old
// object, the whole usage is an increase.
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

// charge returns the charges, or an error if one exceeds a quota. Limits of the spec that are not
// in the status yet are charged, too. The quota controller can then put them in the status without
// missing concurrent writes.
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

// exceeded returns the limits below the usage.
func exceeded(used, hard corev1.ResourceList) corev1.ResourceList {
	over := corev1.ResourceList{}
	for name, most := range hard {
		if amount := used[name]; amount.Cmp(most) > 0 {
			over[name] = most
		}
	}
	return over
}
