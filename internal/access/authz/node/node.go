// Package node is the node authorizer: a kubelet may read the objects that its pods use, and write
// the objects that it reports.
//
// It builds its graph at the first request of a node, and follows the store from then on.
// Restrictions on the content of a node's writes are the task of an admission plugin.
package node

import (
	"context"
	"fmt"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/access/authz/rbac/defaults"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// role is the role with the rights that all nodes share.
const role = "system:node"

// An Authorizer authorizes nodes. Read is called once, before the first request.
type Authorizer struct {
	stored *stored.Follower
	rules  func() *rbac.Rules
	gates  *gate.Set

	mu    sync.RWMutex
	graph graph
}

var _ authz.Lister = (*Authorizer)(nil)

// Read sets the cache, the set with the kinds to follow, and the feature gates of the server.
func (z *Authorizer) Read(cache *watchcache.Cache, set *resource.Set, gates *gate.Set) {
	z.graph, z.gates = newGraph(), gates
	z.rules = sync.OnceValue(func() *rbac.Rules { return rbac.NewRules(defaults.RulesOf(role, gates)) })
	z.stored = stored.Follow(cache, set, resources(), z.apply)
}

// apply updates the graph.
func (z *Authorizer) apply(of int, c stored.Changes) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if c.Anew() {
		z.graph.clear(kind(of))
	}
	for o, exists := range c.All() {
		by := vertex{kind(of), o.Namespace(), o.Name()}
		var edges []edge
		if exists {
			edges = edgesOf(by, o)
		}
		z.graph.set(by, edges)
	}
}

// Authorize implements authz.Authorizer. It has no opinion on other users.
func (z *Authorizer) Authorize(ctx context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	name, ok := a.User.Node()
	switch {
	case !ok:
		return authz.NoOpinion, "", nil
	case name == "":
		return authz.NoOpinion, fmt.Sprintf("unknown node for user %q", a.User.Name), nil
	}
	q := question{Attributes: a, node: name, gates: z.gates}
	if decide := deciders[[2]string{a.Group, a.Resource}]; a.IsResource && decide != nil {
		decide(&q)
	} else if z.rules().Allow(a) {
		q.allow()
	}
	if q.allowed || q.object.name == "" {
		return q.answer()
	}
	if err := z.stored.Refresh(ctx); err != nil {
		return authz.NoOpinion, "", err
	}
	z.mu.RLock()
	q.allowed = z.graph.leads(q.object, name)
	z.mu.RUnlock()
	return q.answer()
}

// RulesFor implements authz.Lister: the rights of a node depend on objects, so rules cannot list
// them.
func (z *Authorizer) RulesFor(_ context.Context, u *request.User, _ string) ([]rbacv1.PolicyRule, error) {
	if _, ok := u.Node(); ok {
		return nil, fmt.Errorf("node authorizer %w", authz.ErrUnlistable)
	}
	return nil, nil
}
