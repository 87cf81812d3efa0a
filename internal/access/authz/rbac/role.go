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

// A roleID names a Role or ClusterRole.
type roleID struct {
	cluster         bool
	namespace, name string
}

// resource returns the resource for the error of a missing role.
func (id roleID) resource() schema.GroupResource {
	name := "role"
	if id.cluster {
		name = "clusterrole"
	}
	return schema.GroupResource{Group: rbacv1.GroupName, Resource: name}
}

// A role is stored, or named by bindings, or both.
type role struct {
	id       roleID
	object   *watchcache.Object // nil if it is not stored
	bindings int                // number of bindings that name it
	content  atomic.Pointer[content]
}

// A content has the compiled rules of a role.
type content struct {
	rules []rule
	err   error
	table table[*rule]
}

// compiled returns the compiled rules. They are compiled at the first use.
func (r *role) compiled() *content {
	if c := r.content.Load(); c != nil {
		return c
	}
	c := &content{}
	if r.object != nil {
		c.read(r)
	}
	if c.err == nil || r.object.Err() != nil { // not if it could not be loaded
		r.content.Store(c)
	}
	return c
}

func (c *content) read(r *role) {
	var stored struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	var data []byte
	if data, c.err = r.object.JSON(); c.err == nil {
		c.err = json.Unmarshal(data, &stored)
	}
	if c.err != nil {
		c.err = fmt.Errorf("the stored %s %q cannot be read: %w", r.id.resource(), r.id.name, c.err)
		return
	}
	c.compile(stored.Rules)
}

// compile indexes rules.
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

// broken reports whether a binding to the role grants nothing.
func (r *role) broken() bool { return r == nil || r.object == nil || r.compiled().err != nil }

// A rule is a rule of a role.
type rule struct {
	rbacv1.PolicyRule
	anyVerb, anyGroup bool
}

// allows reports whether the rule allows the query. The lookup has already matched the resource and
// the name.
func (r *rule) allows(q *query) bool {
	if !r.anyVerb && !slices.Contains(r.Verbs, q.verb) {
		return false
	}
	if !q.isResource {
		return r.isAbout(q.path)
	}
	return r.anyGroup || slices.Contains(r.APIGroups, q.group)
}

// isAbout reports whether the rule matches the path.
func (r *rule) isAbout(path string) bool {
	return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
		return authz.CoversPath(url, path)
	})
}

// A query is an action in the form for lookups.
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
			resource += "/" + a.Subresource // as in rules
			q.what = placeOf(resource)
		} else if q.what = placeOf(resource); a.Subresource != "" {
			q.what.subresource, q.what.under = a.Subresource, true
		}
		q.group, q.subresource, q.name = a.Group, a.Subresource, a.Name
	}
	return q
}

// A place is the resource of a rule, with a name if the rule has names.
type place struct {
	resource, subresource string
	under                 bool // there is a subresource, possibly ""
	named                 bool
	name                  string
}

// placeOf parses a resource of a rule; a subresource follows a slash.
func placeOf(resource string) (p place) {
	p.resource, p.subresource, p.under = strings.Cut(resource, "/")
	return p
}

// A table finds the rules for a resource and those for paths: of one role, or of many grants.
type table[T comparable] struct {
	places map[place][]T
	paths  []T
	// named, all and under report that there are places with a name, for all resources, and for a
	// subresource of all resources.
	named, all, under bool
}

// add indexes by under the resources of a rule.
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

// appendOnce appends by unless it is already the last element.
func appendOnce[T comparable](to []T, by T) []T {
	if n := len(to); n > 0 && to[n-1] == by {
		return to
	}
	return append(to, by)
}

// at returns the lists that may match a query: the first n of found.
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

// allows reports whether one of the role's rules allows the query.
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
