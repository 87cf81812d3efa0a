package policy

import (
	policyv1 "k8s.io/api/policy/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

// Evictions returns the kind Eviction. It is the body of a subresource of pods, not a resource.
func Evictions() *resource.Definition {
	return kind.New(resource.Definition{
		Group: policyv1.GroupName, Plural: "evictions", Singular: "eviction", Kind: "Eviction", Namespaced: true, Verbs: []string{"create"},
	}, kind.UnlistedOf[*policyv1.Eviction](&resource.Version{Name: "v1"}),
		kind.UnlistedOf[*policyv1.Eviction](&resource.Version{Name: "v1beta1"}).
			Named("k8s.io/api/policy/v1beta1", kind.Life{Introduced: 5, Deprecated: 22, Removed: 25}))
}
