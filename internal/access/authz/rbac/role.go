package rbac

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A roleID says which Role or ClusterRole is meant.
type roleID struct {
	cluster         bool
	namespace, name string
}

// resource is what the role is called where it is missing.
func (id roleID) resource() schema.GroupResource {
	name := "role"
	if id.cluster {
		name = "clusterrole"
	}
	return schema.GroupResource{Group: rbacv1.GroupName, Resource: name}
}

// A role is one that is stored, or that bindings refer to, or both.
type role struct {
	id       roleID
	object   *watchcache.Object // nil if it is not stored
	bindings int                // that refer to it
	content  atomic.Pointer[content]
}

// A content is what a role says, ready to be asked.
type content struct {
	rules []rule
	err   error
	table table[*rule]
}

// compiled returns what the role says, which is read when it is asked for.
func (r *role) compiled() *content {
	if c := r.content.Load(); c != nil {
		return c
	}
	c := &content{}
	if r.object != nil {
		c.read(r)
	}
	r.content.Store(c)
	return c
}

func (c *content) read(r *role) {
	var stored struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if c.err = r.object.Err; c.err == nil {
		c.err = json.Unmarshal(r.object.JSON, &stored)
	}
	if c.err != nil {
		c.err = fmt.Errorf("the stored %s %q cannot be read: %w", r.id.resource(), r.id.name, c.err)
		return
	}
	c.compile(stored.Rules)
}

// compile makes rules ready to be asked.
func (c *content) compile(rules []rbacv1.PolicyRule) {
	c.rules = make([]rule, len(rules))
	for i, p := range rules {
		c.rules[i] = rule{
			PolicyRule: p,
			anyVerb:    slices.Contains(p.Verbs, rbacv1.VerbAll),
			anyGroup:   slices.Contains(p.APIGroups, rbacv1.APIGroupAll),
		}
		c.table.add(&c.rules[i], &c.rules[i])
	}
}

// broken reports whether a binding to the role gives nothing.
func (r *role) broken() bool { return r == nil || r.object == nil || r.compiled().err != nil }

// A rule is one of a role.
type rule struct {
	rbacv1.PolicyRule
	anyVerb, anyGroup bool
}

// allows reports whether the rule allows it. That it is about the resource, and the name, is
// known by where the rule was found.
func (r *rule) allows(q *query) bool {
	if !r.anyVerb && !slices.Contains(r.Verbs, q.verb) {
		return false
	}
	if !q.isResource {
		return r.isAbout(q.path)
	}
	return r.anyGroup || slices.Contains(r.APIGroups, q.group)
}

// isAbout reports whether the rule is about the path.
func (r *rule) isAbout(path string) bool {
	return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
		return url == rbacv1.NonResourceAll || url == path ||
			strings.HasSuffix(url, "*") && strings.HasPrefix(path, strings.TrimRight(url, "*"))
	})
}

// A query is what somebody wants to do, as it is looked up.
type query struct {
	verb, group string
	isResource  bool
	path        string
	subresource string
	what        place // of any name
	name        string
}

func newQuery(a *authz.Attributes) query {
	q := query{verb: a.Verb, isResource: a.IsResource, path: a.Path}
	if a.IsResource {
		resource := a.Resource
		if a.Subresource != "" && strings.Contains(resource, "/") {
			resource += "/" + a.Subresource // which no path can have
			q.what = placeOf(resource)
		} else if q.what = placeOf(resource); a.Subresource != "" {
			q.what.subresource, q.what.under = a.Subresource, true
		}
		q.group, q.subresource, q.name = a.Group, a.Subresource, a.Name
	}
	return q
}

// A place is what a rule says of one resource, and of one name if it is only about some.
type place struct {
	resource, subresource string
	under                 bool // there is a subresource, which may be ""
	named                 bool
	name                  string
}

// placeOf is that of a resource as rules have it, with a subresource after a slash.
func placeOf(resource string) (p place) {
	p.resource, p.subresource, p.under = strings.Cut(resource, "/")
	return p
}

// A table finds the rules that are about a resource, and those that are about paths: the rules
// of a role, or what is granted by many.
type table[T comparable] struct {
	places map[place][]T
	paths  []T
	// named, all and under say that there are places with a name, that are all resources, and
	// that are a subresource of any resource.
	named, all, under bool
}

// add puts what there is by a rule where it is found.
func (t *table[T]) add(p *rule, by T) {
	if len(p.NonResourceURLs) > 0 {
		t.paths = appendOnce(t.paths, by)
	}
	if t.places == nil {
		t.places = map[place][]T{}
	}
	for _, resource := range p.Resources {
		at := placeOf(resource)
		t.all = t.all || resource == rbacv1.ResourceAll
		t.under = t.under || at.under && at.resource == rbacv1.ResourceAll
		if len(p.ResourceNames) == 0 {
			t.places[at] = appendOnce(t.places[at], by)
			continue
		}
		t.named, at.named = true, true
		for _, at.name = range p.ResourceNames {
			t.places[at] = appendOnce(t.places[at], by)
		}
	}
}

// appendOnce appends what is not the last one already.
func appendOnce[T comparable](to []T, by T) []T {
	if n := len(to); n > 0 && to[n-1] == by {
		return to
	}
	return append(to, by)
}

// at returns where something is found. Only the first n are.
func (t *table[T]) at(q *query) (found [6][]T, n int) {
	if !q.isResource {
		found[0] = t.paths
		return found, 1
	}
	look := func(at place) {
		found[n], n = t.places[at], n+1
		if t.named {
			at.named, at.name = true, q.name
			found[n], n = t.places[at], n+1
		}
	}
	look(q.what)
	if t.all {
		look(place{resource: rbacv1.ResourceAll})
	}
	if t.under && q.subresource != "" {
		look(place{resource: rbacv1.ResourceAll, subresource: q.subresource, under: true})
	}
	return found, n
}

// allows reports whether any rule of the role allows it.
func (r *role) allows(q *query) bool {
	return r != nil && r.object != nil && r.compiled().allows(q)
}

func (c *content) allows(q *query) bool {
	found, n := c.table.at(q)
	for _, rules := range found[:n] {
		for _, rule := range rules {
			if rule.allows(q) {
				return true
			}
		}
	}
	return false
}
