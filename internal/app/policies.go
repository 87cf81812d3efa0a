package app

import (
	"context"

	"github.com/anykind/anykind/internal/admission/policy"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// policyParts returns the dependencies of policies. The registry exists before the first evaluation.
func (w *wired) policyParts(core *resource.Set) policy.Dependencies {
	return policy.Dependencies{
		Cache: w.cache, Core: core, Catalog: w.catalog, Authorizer: w.authorizer, Log: w.log, Metrics: w.policies, Manifests: w.manifests, Outcomes: w.outcomes, Shared: w.expressions,
		Decode: func(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Tree, error) {
			return w.registry.Decode(ctx, d, v, o)
		},
	}
}

func (w *wired) mutatingPolicies(gates *gate.Set, core *resource.Set) func([]byte) (any, error) {
	return func(config []byte) (any, error) {
		c, err := policy.ReadConfig(config, policy.MutatingConfiguration, gates)
		if err != nil {
			return nil, err
		}
		if !gates.On(gate.MutatingAdmissionPolicy) {
			return struct{}{}, nil // its policies are stored, and change nothing
		}
		p, err := policy.NewMutating(w.policyParts(core), c)
		return withFiles(w, c.StaticManifestsDir, p, err)
	}
}

func (w *wired) validatingPolicies(gates *gate.Set, core *resource.Set) func([]byte) (any, error) {
	return func(config []byte) (any, error) {
		c, err := policy.ReadConfig(config, policy.ValidatingConfiguration, gates)
		if err != nil {
			return nil, err
		}
		p, err := policy.NewValidating(w.policyParts(core), c)
		return withFiles(w, c.StaticManifestsDir, p, err)
	}
}
