package admission

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/registry"
)

// ReadOnly rejects writes of clients. Dry runs are allowed, and reviews of tokens and rights, which store
// nothing.
type ReadOnly struct {
	Source string // of the objects, for the error
}

// Mutate implements registry.Mutator, so that no later plugin runs.
func (p ReadOnly) Mutate(_ context.Context, a *registry.Admission) error {
	group := a.Target.Definition.Group
	stores := group != authenticationv1.GroupName && group != authorizationv1.GroupName
	if a.User == request.Server || a.Operation != registry.Connect && (a.DryRun() || !stores) {
		return nil
	}
	return a.Forbidden(fmt.Errorf("the server is read-only and serves the objects in %s; dry runs are allowed", p.Source))
}
