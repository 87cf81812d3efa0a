// Package rbac is the authorizer of Roles, ClusterRoles, RoleBindings and ClusterRoleBindings.
//
// A check looks up the grants of the user, and from there the rules for the resource. The index is
// built at the first check and follows the store from then on. A check sees every write that was
// acknowledged before the request. The package does not know the default roles, or the rules for
// writes of roles.
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

// Name is the name of the authorizer in reasons.
const Name = "rbac"

// The kinds of RBAC, in the order in which they are read: roles come before bindings.
const (
	clusterRoles = iota
	roles
	clusterRoleBindings
	roleBindings
	kinds
)

var plurals = [kinds]string{"clusterroles", "roles", "clusterrolebindings", "rolebindings"}

// An Authorizer decides by roles and bindings. Read is called once, before the first request.
type Authorizer struct {
	stored *stored.Follower

	mu    sync.RWMutex
	index index
}

// Read sets the cache, and the set with the kinds to follow.
func (z *Authorizer) Read(cache *watchcache.Cache, set *resource.Set) {
	z.index = newIndex()
	followed := make([]schema.GroupResource, kinds)
	for i, plural := range plurals {
		followed[i] = schema.GroupResource{Group: rbacv1.GroupName, Resource: plural}
	}
	z.stored = stored.Follow(cache, set, followed, z.apply)
}

// Authorize implements authz.Authorizer. The reason names the first binding that allows the request:
// ClusterRoleBindings come before RoleBindings, then the order is by name.
func (z *Authorizer) Authorize(ctx context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if a.User == nil {
		return authz.NoOpinion, "", nil
	}
	if err := z.prepare(ctx, a); err != nil {
		return authz.NoOpinion, "", err
	}
	z.mu.RLock()
	defer z.mu.RUnlock()
	return z.index.decide(a)
}

// decide decides about an action of a user.
func (x *index) decide(a *authz.Attributes) (authz.Decision, string, error) {
	q := newQuery(a)
	scopes := x.scopes(a.Namespace)
	for _, s := range scopes {
		if g := s.find(a.User, &q, x.generation); g != nil {
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

// RulesFor returns the rules of a user in the cluster and in a namespace, which may be "". An error
// comes with the rules that were found.
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

// RulesOf returns the rules that a binding to ref, in a namespace or in the cluster, would grant.
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

// prepare updates the index.
func (z *Authorizer) prepare(ctx context.Context, a *authz.Attributes) error {
	if a.IsResource {
		return z.stored.Refresh(ctx)
	}
	return z.stored.RefreshSoon(ctx)
}

func (z *Authorizer) apply(kind int, c stored.Changes) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if c.Anew() {
		z.index.clear(kind)
	}
	for o, exists := range c.All() {
		if exists {
			z.index.set(kind, o)
		} else {
			z.index.remove(kind, o)
		}
	}
}

// Rules are rules without a role.
type Rules struct{ content content }

// NewRules returns compiled Rules.
func NewRules(rules []rbacv1.PolicyRule) *Rules {
	r := &Rules{}
	r.content.compile(rules)
	return r
}

// Allow reports whether one of the rules allows the action.
func (r *Rules) Allow(a *authz.Attributes) bool {
	q := newQuery(a)
	return r.content.allows(&q)
}
