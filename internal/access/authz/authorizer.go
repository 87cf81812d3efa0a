package authz

import (
	"context"
	"strings"
	"sync/atomic"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/object/request"
)

// A Decision is what an Authorizer says.
type Decision int

// The decisions there are. Who says nothing denies.
const (
	Deny      Decision = iota // nobody else is asked
	Allow                     // nobody else is asked
	NoOpinion                 // ask the next one; if there is none, it is refused
)

// String is the decision as logs and metrics have it.
func (d Decision) String() string {
	switch d {
	case Allow:
		return "Allow"
	case NoOpinion:
		return "NoOpinion"
	default:
		return "Deny"
	}
}

// An Authorizer decides whether somebody may do something, and perhaps says why. An error
// says that it could not find out all that it wanted to know; it may come with any decision.
type Authorizer interface {
	Authorize(ctx context.Context, a *Attributes) (decision Decision, reason string, err error)
}

// A Named authorizer says where a reason is from.
type Named struct {
	Name string
	Authorizer
}

// A Union asks one after the other, until one decides.
type Union []Named

// Authorize implements Authorizer.
func (u Union) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	var reasons []string
	var errs []error
	for i := range u {
		decision, reason, err := u[i].Authorizer.Authorize(ctx, a)
		if decision != NoOpinion {
			return decision, reason, err
		}
		if err != nil {
			errs = append(errs, err)
		}
		if reason != "" {
			reasons = append(reasons, u[i].Name+": "+reason)
		}
	}
	return NoOpinion, strings.Join(reasons, "\n"), utilerrors.NewAggregate(errs)
}

// Privileged lets the group system:masters do everything.
type Privileged struct{}

// PrivilegedName is what Privileged is called in a Union.
const PrivilegedName = "kubernetes.io/system-privileged-group"

// Authorize implements Authorizer.
func (Privileged) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if a.User.In(request.Masters) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

// AlwaysAllow lets everybody do everything.
type AlwaysAllow struct{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return Allow, "", nil
}

// AlwaysDeny lets nobody do anything that another authorizer does not allow.
type AlwaysDeny struct{}

// Authorize implements Authorizer.
func (AlwaysDeny) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return NoOpinion, "Everything is forbidden.", nil
}

// Current is an Authorizer that can be replaced while it is asked. Until there is one, it
// denies.
type Current struct{ current atomic.Pointer[Authorizer] }

// Set replaces the authorizer.
func (c *Current) Set(z Authorizer) { c.current.Store(&z) }

// Authorize implements Authorizer.
func (c *Current) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	if z := c.current.Load(); z != nil {
		return (*z).Authorize(ctx, a)
	}
	return Deny, "", nil
}
