package admission

import (
	"context"
	"errors"

	"github.com/anykind/anykind/internal/registry"
)

// AlwaysAdmit allows every write. It exists for compatibility with kube-apiserver.
type AlwaysAdmit struct{}

// Validate implements registry.Validator.
func (AlwaysAdmit) Validate(context.Context, *registry.Admission) error { return nil }

// AlwaysDeny rejects every write.
type AlwaysDeny struct{}

// Mutate rejects the write. AlwaysDeny is a Mutator so that no later plugin runs.
func (AlwaysDeny) Mutate(_ context.Context, a *registry.Admission) error {
	return a.Forbidden(errors.New("admission control is denying all modifications"))
}
