package admission

import (
	"context"
	"errors"

	"github.com/anykind/anykind/internal/registry"
)

// AlwaysAdmit lets everything in. It is there because it has a name.
type AlwaysAdmit struct{}

// Validate implements registry.Validator.
func (AlwaysAdmit) Validate(context.Context, *registry.Admission) error { return nil }

// AlwaysDeny lets nothing in.
type AlwaysDeny struct{}

// Mutate refuses a write. It changes nothing: it is a Mutator so that nobody else is asked.
func (AlwaysDeny) Mutate(_ context.Context, a *registry.Admission) error {
	return a.Forbidden(errors.New("admission control is denying all modifications"))
}
