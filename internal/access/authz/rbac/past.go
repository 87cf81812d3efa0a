package rbac

import (
	"context"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A State is the authorizer of the roles and bindings of one state of the store.
type State struct{ index index }

// ReadState reads the roles and bindings of a revision. The set has their kinds.
func ReadState(ctx context.Context, b kv.Backend, set *resource.Set, revision int64) (*State, error) {
	s := &State{newIndex()}
	for kind, prefix := range prefixes(set) {
		page, err := b.List(ctx, kv.Range{Prefix: prefix, Revision: revision})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			s.index.set(kind, watchcache.NewObject(r.Key, r.Value, r.Revision))
		}
	}
	return s, nil
}

// prefixes returns the prefixes of the keys of each kind.
func prefixes(set *resource.Set) (all [kinds]string) {
	for kind, plural := range plurals {
		all[kind] = set.Lookup(rbacv1.GroupName, plural).StoragePrefix
	}
	return all
}

// Authorize implements authz.Authorizer.
func (s *State) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if a.User == nil {
		return authz.NoOpinion, "", nil
	}
	return s.index.decide(a)
}

// A Past reads States. It keeps those of the last revisions.
type Past struct {
	backend kv.Backend
	set     *resource.Set

	mu   sync.Mutex
	kept []pastState // the last used ones first
}

type pastState struct {
	revision int64
	*State
}

// keptStates is the number of States that a Past keeps: clients read several pages of one state.
const keptStates = 4

// NewPast returns the Past of a store. The set has the kinds of RBAC.
func NewPast(b kv.Backend, set *resource.Set) *Past { return &Past{backend: b, set: set} }

// At returns the State of a revision.
func (p *Past) At(ctx context.Context, revision int64) (*State, error) {
	if s := p.find(revision); s != nil {
		return s, nil
	}
	s, err := ReadState(ctx, p.backend, p.set, revision)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.Insert(p.kept, 0, pastState{revision, s})
	if len(p.kept) > keptStates {
		p.kept = slices.Delete(p.kept, keptStates, len(p.kept))
	}
	return s, nil
}

// find returns a kept State, or nil.
func (p *Past) find(revision int64) *State {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.kept, func(s pastState) bool { return s.revision == revision })
	if i < 0 {
		return nil
	}
	found := p.kept[i]
	p.kept = slices.Insert(slices.Delete(p.kept, i, i+1), 0, found)
	return found.State
}
