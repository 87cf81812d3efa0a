package discovery

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate"
)

// A group is an API group with its versions in order of preference, local or remote.
type group struct {
	name     string
	priority int
	versions []version
}

// path returns the path of the group.
func (g *group) path() string { return (&resource.Group{Name: g.name}).Path() }

// local returns the group as this server serves it, or nil.
func (g *group) local() *resource.Group {
	for _, v := range g.versions {
		if v.local != nil {
			return v.local
		}
	}
	return nil
}

// A version is one version of a group.
type version struct {
	name string
	// local is the group if this server serves the version; otherwise remote is its APIService.
	local  *resource.Group
	remote *aggregate.Service
	// Priorities of its APIService, or those that it would have.
	groupPriority, priority int
}

func (v version) groupVersion(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: v.name}
}

// groups are all groups at one moment. They do not change.
type groups struct {
	set      *resource.Set
	services *aggregate.Services
	groups   []*group // in the order of aggregated discovery
	listed   []*group // in the order of /apis
}

// group returns a group, or nil.
func (v *groups) group(name string) *group {
	i := slices.IndexFunc(v.groups, func(g *group) bool { return g.name == name })
	if i < 0 {
		return nil
	}
	return v.groups[i]
}

// newGroups merges the groups of this server and those of APIServices.
func newGroups(set *resource.Set, services *aggregate.Services) *groups {
	v := &groups{set: set, services: services}
	for _, local := range set.Groups() {
		g := &group{name: local.Name, priority: local.Priority}
		remote := services.Group(local.Name)
		for _, name := range local.Versions {
			if services.Lookup(local.Name, name) == nil {
				_, leading := local.Leading(name)
				one := version{name: name, local: local, groupPriority: local.Priority, priority: leading.Priority}
				if s := find(remote, name); s != nil {
					one.groupPriority, one.priority = int(s.GroupPriority), int(s.VersionPriority)
				}
				g.versions = append(g.versions, one)
			}
		}
		if len(g.versions) == 0 {
			g.priority = 0
		}
		v.groups = append(v.groups, g)
	}
	if services.Remote() {
		v.addRemote()
	}
	v.groups = slices.DeleteFunc(v.groups, func(g *group) bool { return len(g.versions) == 0 })
	// Groups of equal priority are sorted by name.
	slices.SortStableFunc(v.groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
	})
	v.list()
	return v
}

func (v *groups) addRemote() {
	named := map[string]*group{}
	for _, g := range v.groups {
		named[g.name] = g
	}
	for s := range v.services.Remotes() {
		g := named[s.Group]
		if g == nil {
			g = &group{name: s.Group}
			named[s.Group] = g
			v.groups = append(v.groups, g)
		}
		g.priority = max(g.priority, int(s.GroupPriority))
		g.versions = append(g.versions, version{name: s.Version, remote: s, groupPriority: int(s.GroupPriority), priority: int(s.VersionPriority)})
	}
}

// list sorts the groups, and their versions, for /apis. Groups of equal priority are sorted by
// VERSION.GROUP, the name of an APIService: the least one among the group's versions of that
// priority.
func (v *groups) list() {
	type place struct {
		priority int
		name     string
	}
	places := map[*group]place{}
	for _, g := range v.groups {
		order.Stable(g.versions, func(a, b version) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), resource.CompareVersions(b.name, a.name))
		})
		var first place
		for i, one := range g.versions {
			p := place{one.groupPriority, one.name + "." + g.name}
			if i == 0 || p.priority > first.priority || p.priority == first.priority && p.name < first.name {
				first = p
			}
		}
		places[g] = first
	}
	v.listed = slices.Clone(v.groups)
	slices.SortFunc(v.listed, func(a, b *group) int {
		return cmp.Or(cmp.Compare(places[b].priority, places[a].priority), cmp.Compare(places[a].name, places[b].name))
	})
}

func find(g *aggregate.Group, version string) *aggregate.Service {
	if g == nil {
		return nil
	}
	i := slices.IndexFunc(g.Versions, func(s *aggregate.Service) bool { return s.Version == version })
	if i < 0 {
		return nil
	}
	return g.Versions[i]
}

// equal reports whether two views of one Set have the same content in the same order.
func (v *groups) equal(other *groups) bool {
	return v.set == other.set && slices.EqualFunc(v.groups, other.groups, func(a, b *group) bool {
		return a.name == b.name && slices.EqualFunc(a.versions, b.versions, func(a, b version) bool {
			return a.name == b.name && (a.remote == nil) == (b.remote == nil)
		})
	})
}

// noServices is a server without APIServices.
var noServices = &aggregate.Services{}

func (h *Handler) services(ctx context.Context) *aggregate.Services {
	if h.options.Services == nil {
		return noServices
	}
	return h.options.Services(ctx)
}

// view returns the current groups.
func (h *Handler) view(ctx context.Context) *groups {
	services := h.services(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.follow(services)
}

// remotes has the discovery of other servers' versions, as JSON.
type remotes map[schema.GroupVersion][]byte

func (h *Handler) remotes(ctx context.Context, services *aggregate.Services) remotes {
	if !services.Remote() || h.options.Published == nil {
		return nil
	}
	out := remotes{}
	for gv, v := range h.options.Published(ctx, services) {
		out[gv] = v.Encoded
	}
	return out
}

func (r remotes) equal(other remotes) bool {
	return maps.EqualFunc(r, other, func(a, b []byte) bool { return string(a) == string(b) })
}
