package coordination

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func leases() *resource.Definition {
	return kind.Kind[*coordinationv1.Lease, *coordinationv1.LeaseList]{
		Definition: resource.Definition{
			Group: coordinationv1.GroupName, Plural: "leases", Namespaced: true,
			Strategy: resource.Strategy{AllowCreateOnUpdate: true},
		},
		AnyFinalizers: true, Validate: validateLease,
		Columns: `
			Holder  string  .spec.holderIdentity
			Age
		`,
	}.New()
}

func validateLease(c *rule.Check, lease, _ *coordinationv1.Lease) {
	c.Walk(&lease.Spec, "spec")
	spec := &lease.Spec
	if spec.Strategy != nil {
		validateStrategy(c.At("spec", "strategy", "strategy"), *spec.Strategy)
	}
	if spec.PreferredHolder != nil && *spec.PreferredHolder != "" && (spec.Strategy == nil || *spec.Strategy == "") {
		c.At("spec", "preferredHolder").Forbidden("may only be specified if `strategy` is defined")
	}
}

func validateStrategy(c *rule.Check, strategy coordinationv1.CoordinatedLeaseStrategy) {
	if !strings.Contains(string(strategy), "/") {
		if strategy != coordinationv1.OldestEmulationVersion {
			rule.NotSupported(c, strategy, coordinationv1.OldestEmulationVersion)
		}
		return
	}
	c.Invalids(strategy, validation.IsQualifiedName(string(strategy)))
}
