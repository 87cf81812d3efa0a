// Package webhook is the webhook authorizer: it sends SubjectAccessReviews to another server.
//
// It knows both versions of the review, match conditions, and the cache of answers. It does not know
// how connections to the server are made.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/network/review"
	"github.com/anykind/anykind/internal/object/bounded"
	"github.com/anykind/anykind/internal/object/request"
)

const (
	// remembered is the size of the cache.
	remembered = 8192
	// maxRemembered bounds the client-controlled part of a cached request.
	maxRemembered = 10000
)

// Poster sends a review and decodes the response.
type Poster interface {
	Post(ctx context.Context, kind schema.GroupVersionKind, in, out review.Object) error
}

// A Matcher evaluates match conditions.
type Matcher interface {
	Eval(ctx context.Context, r *authorizationv1.SubjectAccessReview) (bool, error)
}

// Options of a Webhook.
type Options struct {
	Server  Poster
	Version string // of SubjectAccessReview
	// AuthorizedTTL and UnauthorizedTTL are the TTLs of cached answers; 0 disables caching.
	AuthorizedTTL, UnauthorizedTTL time.Duration
	// OnError is the decision after a failure: Deny or NoOpinion.
	OnError authz.Decision
	Match   Matcher // nil for all requests
	// FailedOpen is called when a failure becomes no opinion.
	FailedOpen func(err error)
	Log        *slog.Logger
}

// Webhook authorizes by another server. It implements authz.Authorizer.
type Webhook struct {
	options Options
	answers *bounded.Cache[string, *authorizationv1.SubjectAccessReviewStatus]
}

var _ authz.Lister = (*Webhook)(nil)

// CheckVersion validates a version of SubjectAccessReview.
func CheckVersion(version string) error {
	v1, v1beta1 := authorizationv1.SchemeGroupVersion.Version, authorizationv1beta1.SchemeGroupVersion.Version
	if version == v1 || version == v1beta1 {
		return nil
	}
	return fmt.Errorf("unsupported webhook authorizer version %q, supported versions are %q, %q", version, v1, v1beta1)
}

// New returns a Webhook.
func New(o Options) *Webhook {
	return &Webhook{options: o, answers: bounded.New[string, *authorizationv1.SubjectAccessReviewStatus](remembered)}
}

var errBoth = errors.New("webhook subject access review returned both allow and deny response")

// Authorize implements authz.Authorizer.
func (w *Webhook) Authorize(ctx context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	r := &authorizationv1.SubjectAccessReview{Spec: specOf(a)}
	if w.options.Match != nil {
		matches, err := w.options.Match.Eval(ctx, r)
		if err != nil {
			return w.options.OnError, "", err
		}
		if !matches {
			return authz.NoOpinion, "", nil
		}
	}
	status, err := w.answer(ctx, a, &r.Spec)
	switch {
	case err != nil:
		return w.options.OnError, "", err
	case status.Denied && status.Allowed:
		return authz.Deny, status.Reason, errBoth
	case status.Denied:
		return authz.Deny, status.Reason, nil
	case status.Allowed:
		return authz.Allow, status.Reason, nil
	default:
		return authz.NoOpinion, status.Reason, nil
	}
}

// RulesFor implements authz.Lister.
func (w *Webhook) RulesFor(context.Context, *request.User, string) ([]rbacv1.PolicyRule, error) {
	return nil, fmt.Errorf("webhook authorizer %w", authz.ErrUnlistable)
}

// answer returns the answer of the server, or a cached one.
func (w *Webhook) answer(ctx context.Context, a *authz.Attributes, spec *authorizationv1.SubjectAccessReviewSpec) (*authorizationv1.SubjectAccessReviewStatus, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	key := string(data)
	if known, ok := w.answers.Get(key); ok {
		return known, nil
	}
	status, err := w.ask(ctx, spec)
	if err != nil {
		w.options.Log.Error("failed to make webhook authorizer request", "error", err)
		if w.options.OnError == authz.NoOpinion && ctx.Err() == nil {
			w.options.FailedOpen(err)
		}
		return nil, err
	}
	ttl := w.options.UnauthorizedTTL
	if status.Allowed {
		ttl = w.options.AuthorizedTTL
	}
	if isSmall(a) {
		w.answers.AddFor(ttl, key, status)
	}
	return status, nil
}

// isSmall reports whether the client-controlled part of a request is short enough for the cache.
func isSmall(a *authz.Attributes) bool {
	return len(a.Namespace)+len(a.Verb)+len(a.Group)+len(a.Version)+len(a.Resource)+len(a.Subresource)+len(a.Name)+len(a.Path) < maxRemembered
}

func (w *Webhook) ask(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (*authorizationv1.SubjectAccessReviewStatus, error) {
	const kind = "SubjectAccessReview"
	if w.options.Version == authorizationv1.SchemeGroupVersion.Version {
		var out authorizationv1.SubjectAccessReview
		err := w.options.Server.Post(ctx, authorizationv1.SchemeGroupVersion.WithKind(kind), &authorizationv1.SubjectAccessReview{Spec: *spec}, &out)
		return &out.Status, err
	}
	var out authorizationv1beta1.SubjectAccessReview
	in := &authorizationv1beta1.SubjectAccessReview{Spec: olderSpec(spec)}
	err := w.options.Server.Post(ctx, authorizationv1beta1.SchemeGroupVersion.WithKind(kind), in, &out)
	s := out.Status
	return &authorizationv1.SubjectAccessReviewStatus{Allowed: s.Allowed, Denied: s.Denied, Reason: s.Reason, EvaluationError: s.EvaluationError}, err
}
