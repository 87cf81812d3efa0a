package authz

import (
	"context"
	"strings"
	"sync/atomic"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/object/request"
)

// A Decision is the result of an Authorizer.
type Decision int

// The decisions. The zero value denies.
const (
	Deny      Decision = iota // final
	Allow                     // final
	NoOpinion                 // ask the next authorizer; the last one denies
)

// String returns the decision for logs and metrics.
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

// An Authorizer decides whether a user may do something, with an optional reason. An error reports
// an incomplete evaluation; it may come with any decision.
type Authorizer interface {
	Authorize(ctx context.Context, a *Attributes) (decision Decision, reason string, err error)
}

// Named adds the name of an authorizer to its reasons.
type Named struct {
	Name string
	Authorizer
}

// A Union asks authorizers in order. The first to decide wins.
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

// Privileged allows everything to the group system:masters.
type Privileged struct{}

// PrivilegedName is the name of Privileged in a Union.
const PrivilegedName = "kubernetes.io/system-privileged-group"

// Authorize implements Authorizer.
func (Privileged) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if a.User.In(request.Masters) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

// AlwaysAllow allows every request.
type AlwaysAllow struct{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return Allow, "", nil
}

// AlwaysDeny allows no request. Like Kubernetes' authorizer of that name, it has no opinion.
type AlwaysDeny struct{}

// Authorize implements Authorizer.
func (AlwaysDeny) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return NoOpinion, "Everything is forbidden.", nil
}

// Current is an Authorizer that can be replaced while in use. It denies until Set is called.
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
