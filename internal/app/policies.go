package app

import (
	"context"

	"github.com/anykind/anykind/internal/admission/policy"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/watchcache"
)

// policyParts are what policies need. The registry is there when the first of them is asked.
func (w *wired) policyParts(core *resource.Set) policy.Parts {
	return policy.Parts{
		Cache: w.cache, Core: core, Catalog: w.catalog, Authorizer: w.authorizer, Log: w.log, Shared: &w.expressions,
		Decode: func(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Tree, error) {
			return w.registry.Decode(ctx, d, v, o)
		},
	}
}

func (w *wired) mutatingPolicies(core *resource.Set) func([]byte) (any, error) {
	return func(config []byte) (any, error) {
		return policy.NewMutating(w.policyParts(core)), policy.CheckConfig(config, policy.MutatingConfiguration)
	}
}

func (w *wired) validatingPolicies(core *resource.Set) func([]byte) (any, error) {
	return func(config []byte) (any, error) {
		return policy.NewValidating(w.policyParts(core)), policy.CheckConfig(config, policy.ValidatingConfiguration)
	}
}
