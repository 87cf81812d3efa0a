package resource

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/version"
)

// A Set has all served Definitions at one moment. It is immutable. A Set that differs in few of them from
// another one is a layer over that.
type Set struct {
	byName map[name]*Definition // nil for those that the Set below has and this one has not
	below  map[name]*Definition
	len    int
	groups []*Group
}

type name struct{ group, plural string }

// A Group is an API group with its versions in order of preference.
type Group struct {
	Name     string
	Priority int      // higher comes first in discovery
	Versions []string // served ones
	// Definitions of the group with at least one served version, by name.
	Definitions []*Definition
}

// Serves reports whether a version of the group is served. A nil group serves none.
func (g *Group) Serves(version string) bool {
	return g != nil && slices.Contains(g.Versions, version)
}

// Leading returns the definition that gives a served version of the group its priorities: a
// compiled-in one before a custom one.
func (g *Group) Leading(version string) (of *Definition, as *Version) {
	for _, d := range g.Definitions {
		if v := d.Version(version); v != nil && v.Served && (of == nil || of.Dialect != CompiledIn && d.Dialect == CompiledIn) {
			of, as = d, v
		}
	}
	return of, as
}

// Path returns the path of the group.
func (g *Group) Path() string {
	if g.Name == "" {
		return "/api"
	}
	return "/apis/" + g.Name
}

// NewSet returns the Set of definitions. Of two with one name the first counts.
func NewSet(definitions []*Definition) *Set {
	s := &Set{byName: make(map[name]*Definition, len(definitions))}
	groups := map[string]*Group{}
	for _, d := range definitions {
		n := name{d.Group, d.Plural}
		if s.byName[n] != nil {
			continue
		}
		s.byName[n] = d
		s.len++
		if !d.Served() {
			continue
		}
		g := groups[d.Group]
		if g == nil {
			g = &Group{Name: d.Group}
			groups[d.Group] = g
			s.groups = append(s.groups, g)
		}
		g.Definitions = append(g.Definitions, d)
	}
	for _, g := range s.groups {
		slices.SortFunc(g.Definitions, func(a, b *Definition) int { return cmp.Compare(a.Plural, b.Plural) })
		seen := map[string]bool{}
		for _, d := range g.Definitions {
			g.Priority = max(g.Priority, d.GroupPriority)
			for _, v := range d.Versions {
				if v.Served && !seen[v.Name] {
					seen[v.Name] = true
					g.Versions = append(g.Versions, v.Name)
				}
			}
		}
		slices.SortStableFunc(g.Versions, func(a, b string) int { return CompareVersions(b, a) })
	}
	slices.SortFunc(s.groups, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	return s
}

// CompareVersions orders versions by preference: v2 before v1 before v1beta1 before names of
// other forms.
func CompareVersions(a, b string) int { return version.CompareKubeAwareVersionStrings(a, b) }

// Lookup returns the Definition of a resource, or nil.
func (s *Set) Lookup(group, plural string) *Definition { return s.find(name{group, plural}) }

func (s *Set) find(n name) *Definition {
	if d, ok := s.byName[n]; ok {
		return d
	}
	return s.below[n]
}

// All yields every Definition, including those without a served version, in no particular order.
func (s *Set) All() iter.Seq[*Definition] {
	return func(yield func(*Definition) bool) {
		for _, d := range s.byName {
			if d != nil && !yield(d) {
				return
			}
		}
		for n, d := range s.below {
			if _, ok := s.byName[n]; !ok && !yield(d) {
				return
			}
		}
	}
}

// Groups returns the served groups in the order of discovery.
func (s *Set) Groups() []*Group { return s.groups }

// Group returns the served group of that name, or nil.
func (s *Set) Group(name string) *Group {
	i := slices.IndexFunc(s.groups, func(g *Group) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return s.groups[i]
}

// Len returns the number of Definitions.
func (s *Set) Len() int { return s.len }

// A Catalog holds the current Set. The zero value holds an empty one. Several Catalogs may hold the same
// Definitions.
type Catalog struct {
	current atomic.Pointer[Set]

	mu    sync.Mutex
	lives map[*lineage]life // of Definitions whose end a caller waits for
}

// A life ends when its Definition is retired.
type life struct {
	context.Context
	end context.CancelFunc
	of  name
}

// Set returns the current Set.
func (c *Catalog) Set() *Set {
	if s := c.current.Load(); s != nil {
		return s
	}
	return NewSet(nil)
}

// Swap replaces the current Set, and retires the Definitions that are not in the new one. Only
// one goroutine may call it.
func (c *Catalog) Swap(s *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(s)
	for of, l := range c.lives {
		if d := s.find(l.of); d == nil || d.lineage != of {
			l.end()
			delete(c.lives, of)
		}
	}
}

// Retired is closed once d is no longer in the Set: the resource is gone, or another Definition replaced it.
func (c *Catalog) Retired(d *Definition) <-chan struct{} { return c.life(d).Done() }

// OnRetired calls f in a new goroutine when d is retired. Until then it needs no goroutine. stop
// cancels it.
func (c *Catalog) OnRetired(d *Definition, f func()) (stop func() bool) {
	return context.AfterFunc(c.life(d), f)
}

func (c *Catalog) life(d *Definition) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.lives[d.lineage]; ok {
		return l
	}
	l := life{of: name{d.Group, d.Plural}}
	l.Context, l.end = context.WithCancel(context.Background())
	if now := c.Set().find(l.of); now == nil || now.lineage != d.lineage {
		l.end()
		return l
	}
	if c.lives == nil {
		c.lives = map[*lineage]life{}
	}
	c.lives[d.lineage] = l
	return l
}
