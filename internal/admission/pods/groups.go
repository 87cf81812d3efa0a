package pods

import (
	"context"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/registry"
)

// GroupProtection adds a finalizer to new PodGroups, so that they stay while pods refer to them.
type GroupProtection struct{}

const groupFinalizer = schedulingv1alpha3.GroupName + "/podgroup-protection"

// Mutate implements registry.Mutator.
func (GroupProtection) Mutate(_ context.Context, a *registry.Admission) error {
	if !a.Is(schedulingv1alpha3.Resource("podgroups"), "", registry.Create) || !a.Gates.On(gate.GenericWorkload) {
		return nil
	}
	a.AddFinalizer(groupFinalizer)
	return nil
}
