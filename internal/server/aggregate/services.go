package aggregate

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Service is the content of an APIService. It is immutable.
type Service struct {
	// Name of the APIService: VERSION.GROUP.
	Name           string
	Group, Version string
	// GroupPriority and VersionPriority order discovery, highest first.
	GroupPriority, VersionPriority int32
	// Available is the condition of that name. No request is forwarded to an unavailable Backend.
	Available bool
	// Backend is the API server that serves the version; nil if local.
	Backend *Backend
}

// GroupVersion returns the version of the group that the APIService is about.
func (s *Service) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: s.Group, Version: s.Version}
}

// Path returns the discovery path of the version.
func (s *Service) Path() string {
	if s.Group == "" {
		return "/api/" + s.Version
	}
	return "/apis/" + s.Group + "/" + s.Version
}

// Services are all APIServices at one moment. They are immutable. The zero value has none.
type Services struct {
	remote map[schema.GroupVersion]*Service
	// order sorts them on first use: during a burst of new definitions no request needs the
	// order.
	order func() *order
}

// An order is the order of discovery.
type order struct {
	groups  []Group
	byGroup map[string]*Group
}

// A Group has the versions of a group that have an APIService, in the order of discovery.
type Group struct {
	Name     string
	Versions []*Service
}

// Remote reports whether any version of the group is remote.
func (g *Group) Remote() bool {
	return g != nil && slices.ContainsFunc(g.Versions, func(s *Service) bool { return s.Backend != nil })
}

// Remote reports whether any APIService is remote.
func (s *Services) Remote() bool { return len(s.remote) > 0 }

// Groups returns the groups in the order of discovery.
func (s *Services) Groups() []Group {
	if s.order == nil {
		return nil
	}
	return s.order().groups
}

// Group returns a group, or nil.
func (s *Services) Group(name string) *Group {
	if s.order == nil {
		return nil
	}
	return s.order().byGroup[name]
}

// Lookup returns the Service of a remote version, else nil.
func (s *Services) Lookup(group, version string) *Service {
	if len(s.remote) == 0 {
		return nil
	}
	return s.remote[schema.GroupVersion{Group: group, Version: version}]
}

// Remotes returns the remote versions, in the order of discovery.
func (s *Services) Remotes() iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		if len(s.remote) == 0 {
			return
		}
		for _, g := range s.Groups() {
			for _, one := range g.Versions {
				if one.Backend != nil && !yield(one) {
					return
				}
			}
		}
	}
}

// arrange sorts Services into the order of discovery.
func arrange(all []*Service) *order {
	s := &order{byGroup: map[string]*Group{}}
	slices.SortFunc(all, func(a, b *Service) int {
		return cmp.Or(cmp.Compare(b.GroupPriority, a.GroupPriority), cmp.Compare(a.Name, b.Name))
	})
	at := map[string]int{}
	for _, one := range all {
		i, ok := at[one.Group]
		if !ok {
			i = len(s.groups)
			at[one.Group] = i
			s.groups = append(s.groups, Group{Name: one.Group})
		}
		s.groups[i].Versions = append(s.groups[i].Versions, one)
	}
	for i := range s.groups {
		g := &s.groups[i]
		slices.SortStableFunc(g.Versions, func(a, b *Service) int {
			return cmp.Or(cmp.Compare(b.VersionPriority, a.VersionPriority), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
		})
		s.byGroup[g.Name] = g
	}
	return s
}

// known are the APIServices of the last read, by key.
type known struct {
	mu  sync.Mutex
	all map[string]*Service
	// moved reports that a remote APIService was added, changed or removed.
	moved bool
}

func (k *known) put(key string, s *Service) {
	was := k.all[key]
	k.moved = k.moved || was != nil && was.Backend != nil || s != nil && s.Backend != nil
	if s == nil {
		delete(k.all, key)
	} else {
		k.all[key] = s
	}
}

func (k *known) order() *order {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.all))
	k.mu.Unlock()
	return arrange(all)
}

// apply computes the Services from changes of APIServices.
func (a *Aggregator) apply(_ int, c stored.Changes) {
	a.known.mu.Lock()
	defer a.known.mu.Unlock()
	if c.Anew() {
		for key := range a.known.all {
			a.known.put(key, nil)
		}
	}
	for o, exists := range c.All() {
		if exists {
			a.known.put(o.Key, a.read(o))
		} else {
			a.known.put(o.Key, nil)
		}
	}
	remote := a.now.Load().remote
	if a.known.moved {
		remote = map[schema.GroupVersion]*Service{}
		for _, s := range a.known.all {
			if s.Backend != nil {
				remote[s.GroupVersion()] = s
			}
		}
		a.tidy(remote)
		a.known.moved = false
	}
	a.now.Store(&Services{remote: remote, order: sync.OnceValue(a.known.order)})
}

// read returns the Service of an APIService, or nil if it cannot be decoded.
func (a *Aggregator) read(o *watchcache.Object) *Service {
	var t apiregistrationv1.APIService
	if data, err := o.JSON(); err != nil || json.Unmarshal(data, &t) != nil {
		return nil
	}
	s := &Service{
		Name: t.Name, Group: t.Spec.Group, Version: t.Spec.Version,
		GroupPriority: t.Spec.GroupPriorityMinimum, VersionPriority: t.Spec.VersionPriority,
		Available: slices.ContainsFunc(t.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
			return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
		}),
	}
	if of := t.Spec.Service; of != nil {
		at := egress.Service{Namespace: of.Namespace, Name: of.Name, Port: 443}
		if of.Port != nil {
			at.Port = *of.Port
		}
		s.Backend = a.backend(at, t.Spec.CABundle, t.Spec.InsecureSkipTLSVerify)
	}
	return s
}

// Arranged returns Services without a store.
func Arranged(all ...*Service) *Services {
	s := &Services{remote: map[schema.GroupVersion]*Service{}, order: sync.OnceValue(func() *order { return arrange(all) })}
	for _, one := range all {
		if one.Backend != nil {
			s.remote[one.GroupVersion()] = one
		}
	}
	return s
}
