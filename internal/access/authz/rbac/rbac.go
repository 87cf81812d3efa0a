// Package rbac is the authorizer that reads Roles, ClusterRoles, RoleBindings and
// ClusterRoleBindings.
//
// A check looks up who somebody is, and from there the rules that are about what they want.
// The index is made when somebody asks for the first time and follows what is stored from then
// on. A check knows all that was acknowledged before the request came. The package does not
// know who may write roles, or which of them every cluster has.
package rbac

import (
	"context"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Name is what the authorizer is called where its reasons are told.
const Name = "rbac"

// The kinds that say who may do what, in the order in which they are read: what a binding
// refers to comes before it.
const (
	clusterRoles = iota
	roles
	clusterRoleBindings
	roleBindings
	kinds
)

// An Authorizer decides by roles and bindings. Read is called once, before anybody asks.
type Authorizer struct {
	stored *stored.Follower

	mu    sync.RWMutex
	index index
}

// Read has the Authorizer read what a cache has of the kinds in a set.
func (z *Authorizer) Read(cache *watchcache.Cache, set *resource.Set) {
	z.index = newIndex()
	followed := make([]schema.GroupResource, kinds)
	for i, plural := range [kinds]string{"clusterroles", "roles", "clusterrolebindings", "rolebindings"} {
		followed[i] = schema.GroupResource{Group: rbacv1.GroupName, Resource: plural}
	}
	z.stored = stored.Follow(cache, set, followed, z.apply)
}

// Authorize implements authz.Authorizer. Of several bindings that allow it, it names the first:
// those of the cluster come before those of the namespace, and among them it is the name that
// counts.
func (z *Authorizer) Authorize(ctx context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if a.User == nil {
		return authz.NoOpinion, "", nil
	}
	if err := z.prepare(ctx, a); err != nil {
		return authz.NoOpinion, "", err
	}
	q := newQuery(a)
	z.mu.RLock()
	defer z.mu.RUnlock()
	scopes := z.index.scopes(a.Namespace)
	for _, s := range scopes {
		if g := s.find(a.User, &q, z.index.generation); g != nil {
			return authz.Allow, g.allowed(), nil
		}
	}
	var errs []error
	for _, s := range scopes {
		errs = s.problems(a.User, errs)
	}
	if len(errs) == 0 {
		return authz.NoOpinion, "", nil
	}
	return authz.NoOpinion, "RBAC: " + utilerrors.NewAggregate(errs).Error(), nil
}

// RulesFor returns the rules that a user has in a namespace, which may be "", and those of the
// cluster. Besides an error there are those that could be found.
func (z *Authorizer) RulesFor(ctx context.Context, u *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	if err := z.stored.Refresh(ctx); err != nil {
		return nil, err
	}
	z.mu.RLock()
	defer z.mu.RUnlock()
	var rules []rbacv1.PolicyRule
	var errs []error
	for _, s := range z.index.scopes(namespace) {
		for _, g := range s.grants(u) {
			given, err := g.binding.rules()
			if err != nil {
				errs = append(errs, err)
			}
			rules = appendPolicy(rules, given)
		}
	}
	return rules, utilerrors.NewAggregate(errs)
}

// RulesOf returns the rules that a binding in a namespace, or of the cluster, would give.
func (z *Authorizer) RulesOf(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if err := z.stored.Refresh(ctx); err != nil {
		return nil, err
	}
	z.mu.RLock()
	defer z.mu.RUnlock()
	b := &binding{namespace: namespace, ref: ref}
	if id, ok := b.refersTo(); ok {
		if b.role = z.index.roles[id]; b.role == nil {
			b.role = &role{id: id}
		}
	}
	given, err := b.rules()
	return appendPolicy(nil, given), err
}

func appendPolicy(to []rbacv1.PolicyRule, rules []rule) []rbacv1.PolicyRule {
	for i := range rules {
		to = append(to, rules[i].PolicyRule)
	}
	return to
}

// prepare brings the index up to date.
func (z *Authorizer) prepare(ctx context.Context, a *authz.Attributes) error {
	if a.IsResource {
		return z.stored.Refresh(ctx)
	}
	return z.stored.RefreshSoon(ctx)
}

func (z *Authorizer) apply(kind int, events []*watchcache.Event, whole *watchcache.Snapshot) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if whole != nil {
		z.index.clear(kind)
		for o := range whole.Scan("", "") {
			z.index.set(kind, o)
		}
	}
	for _, e := range events {
		if e.Object != nil {
			z.index.set(kind, e.Object)
		} else {
			z.index.remove(kind, e.Prev)
		}
	}
}

// Rules are rules that are in no role.
type Rules struct{ content content }

// NewRules returns Rules that are ready to be asked.
func NewRules(rules []rbacv1.PolicyRule) *Rules {
	r := &Rules{}
	r.content.compile(rules)
	return r
}

// Allow reports whether any of the rules allows it.
func (r *Rules) Allow(a *authz.Attributes) bool {
	q := newQuery(a)
	return r.content.allows(&q)
}
