// Package quota is the admission plugin ResourceQuota.
//
// What an object uses is charged to the quotas of its namespace in the write that stores the object.
// So a quota is never exceeded, through however many servers, and a write that fails charges nothing.
// The package internal/controller/quota gives back later what nobody uses any more.
//
// The package knows what quotas say. How much an object uses is measured by internal/builtin/usage.
package quota

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Options of a Plugin. All but Config are needed.
type Options struct {
	Cache      *watchcache.Cache
	Core       *resource.Set
	Evaluators *usage.Evaluators
	Turns      *Turns
	Config     []byte // of the plugin, in the file of the configuration of admission
}

// A Plugin is a registry.Resolver.
type Plugin struct {
	Options
	configuration
	kind     *resource.Definition // ResourceQuota
	quotas   *stored.Lister[corev1.ResourceQuota]
	meetings *watchcache.Resource
	unmoved  atomic.Pointer[[]resource.Mark] // the last mark by which something was found to be unlimited
}

// New returns the plugin.
func New(o Options) (*Plugin, error) {
	c, err := read(o.Config)
	of := corev1.Resource("resourcequotas")
	return &Plugin{
		Options: o, configuration: c,
		kind:   o.Core.Lookup(of.Group, of.Resource),
		quotas: stored.List[corev1.ResourceQuota](o.Cache, o.Core, of), meetings: o.Cache.Resource(meetingPrefix),
	}, err
}

// Resolve charges what is created, or changed, to the quotas of its namespace.
func (p *Plugin) Resolve(ctx context.Context, a *registry.Admission) ([]resource.Mark, error) {
	d := a.Target.Definition
	if !d.Namespaced || a.Operation != registry.Create && a.Operation != registry.Update {
		return nil, nil
	}
	if marks, err := p.unlimited(ctx, a); err != nil || marks != nil {
		return marks, err
	}
	r, err := p.request(ctx, a)
	if err != nil {
		return nil, err
	}
	begins := r.begins(p.kind)
	if r.of == nil && !begins {
		return nil, nil
	}
	met, err := p.meeting(ctx)
	if err != nil {
		return nil, err
	}
	met.Moves = begins
	if begins {
		met.Value = []byte(a.Target.Name)
	}
	if r.of == nil {
		return []resource.Mark{met}, nil
	}
	charges, err := p.charges(ctx, r)
	if err != nil || a.DryRun() {
		return nil, err
	}
	marks := []resource.Mark{met}
	for i := range charges {
		m, err := charges[i].mark(ctx, p.kind)
		if err != nil {
			return nil, err
		}
		marks = append(marks, m)
	}
	return marks, nil
}

// unlimited returns by which mark there is no quota that could limit what is created, or nothing if
// that takes a closer look. It is what nearly every write costs.
func (p *Plugin) unlimited(ctx context.Context, a *registry.Admission) ([]resource.Mark, error) {
	if a.Operation != registry.Create || a.Target.Subresource != "" || a.Target.Definition == p.kind ||
		len(p.LimitedResources) > 0 || usage.Uncounted(a.Target.Definition.GroupResource()) {
		return nil, nil
	}
	met, err := p.meeting(ctx)
	if err != nil {
		return nil, err
	}
	limited, err := p.quotas.Any(ctx, a.Target.Namespace)
	if err != nil || limited {
		return nil, registry.StorageError(err)
	}
	if last := p.unmoved.Load(); last != nil && (*last)[0].Revision == met.Revision {
		return *last, nil
	}
	marks := []resource.Mark{met}
	p.unmoved.Store(&marks)
	return marks, nil
}

// charges returns what is charged to which quotas. Nobody is refused for what is not true any more,
// and who charges something waits for the turn to do so.
func (p *Plugin) charges(ctx context.Context, r *request) ([]charge, error) {
	all, err := p.decide(ctx, r)
	if err != nil {
		if _, err := p.Cache.Fresh(ctx); err != nil {
			return nil, registry.StorageError(err)
		}
		all, err = p.decide(ctx, r)
	}
	if err != nil || len(all) == 0 || r.DryRun() {
		return nil, err
	}
	waited := false
	err = r.Turn(func() (func(int64), error) {
		waited = true
		after, end, err := p.Turns.Take(ctx, r.Target.Namespace)
		if err == nil {
			err = p.Cache.Wait(ctx, after)
		}
		return end, registry.StorageError(err)
	})
	if err != nil || !waited {
		return all, err
	}
	return p.decide(ctx, r)
}

// decide returns what is charged by what is known of the quotas now.
func (p *Plugin) decide(ctx context.Context, r *request) ([]charge, error) {
	quotas, err := p.quotas.Objects(ctx, r.Target.Namespace)
	if err != nil {
		return nil, registry.StorageError(err)
	}
	if len(quotas) == 0 && len(p.LimitedResources) == 0 {
		return nil, nil
	}
	return p.check(ctx, r, quotas)
}

// meetingPrefix begins the key of the mark at which those who begin to limit something meet those who
// use it: who uses something is sure to know all quotas that limit it.
const meetingPrefix = resource.OwnPrefix + "quotas/"

// meeting returns the mark as it was before the quotas are read.
func (p *Plugin) meeting(ctx context.Context) (resource.Mark, error) {
	m := resource.Mark{Key: meetingPrefix + "limits"}
	o, err := p.meetings.Get(ctx, m.Key)
	if o != nil {
		m.Revision = o.Revision
	}
	return m, registry.StorageError(err)
}
