// Package quota implements the admission plugin ResourceQuota.
//
// The write that stores an object also charges its usage to the quotas of its namespace. So a quota
// is never exceeded, with any number of servers, and a failed write charges nothing. The package
// internal/controller/quota later releases usage of deleted objects.
//
// The package knows quotas. internal/builtin/usage measures the usage of an object.
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

// Options of a Plugin. All but Config are required.
type Options struct {
	Cache      *watchcache.Cache
	Core       *resource.Set
	Evaluators *usage.Evaluators
	Turns      *Turns
	Config     []byte // part of the plugin in the admission configuration file
}

// A Plugin is a registry.Resolver.
type Plugin struct {
	Options
	configuration
	kind     *resource.Definition // ResourceQuota
	quotas   *stored.Lister[corev1.ResourceQuota]
	meetings *watchcache.Resource
	unmoved  atomic.Pointer[[]resource.Mark] // the last result of unlimited
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

// Resolve charges the usage of a new or updated object to the quotas of its namespace.
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

// unlimited returns the mark under which no quota can limit a create, or nil if a closer check is
// needed. It is the usual cost of a write.
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

// charges returns the charges of a request. Before it rejects a request it refreshes the cache and
// decides again. A request with charges waits for its turn.
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

// decide returns the charges, computed from the cached quotas.
func (p *Plugin) decide(ctx context.Context, r *request) ([]charge, error) {
	quotas, err := p.quotas.All(ctx, r.Target.Namespace)
	if err != nil {
		return nil, registry.StorageError(err)
	}
	if len(quotas) == 0 && len(p.LimitedResources) == 0 {
		return nil, nil
	}
	return p.check(ctx, r, quotas)
}

// meetingPrefix begins the key of the mark that orders writes which use resources after writes of
// quotas that begin to limit them. A write that uses a resource then sees every quota that limits
// it.
const meetingPrefix = resource.OwnPrefix + "quotas/"

// meeting returns the mark as of before the quotas are read.
func (p *Plugin) meeting(ctx context.Context) (resource.Mark, error) {
	m := resource.Mark{Key: meetingPrefix + "limits"}
	o, err := p.meetings.Get(ctx, m.Key)
	if o != nil {
		m.Revision = o.Revision
	}
	return m, registry.StorageError(err)
}
