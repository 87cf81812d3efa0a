// Package authorization has the review kinds of the group authorization.k8s.io. An authorizer
// answers them, and they are not stored.
package authorization

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// A reviewer calls an authorizer, which may also be a Lister.
type reviewer struct{ authz.Authorizer }

// Definitions returns the kinds of the group. They call z.
func Definitions(z authz.Authorizer) []*resource.Definition {
	r := reviewer{z}
	return []*resource.Definition{
		review[authorizationv1.LocalSubjectAccessReview]("LocalSubjectAccessReview", true, r.local),
		review[authorizationv1.SelfSubjectAccessReview]("SelfSubjectAccessReview", false, r.self),
		review[authorizationv1.SelfSubjectRulesReview]("SelfSubjectRulesReview", false, r.rules),
		review[authorizationv1.SubjectAccessReview]("SubjectAccessReview", false, r.subject),
	}
}

func review[T any](name string, namespaced bool, answer kind.Answering[T]) *resource.Definition {
	singular := strings.ToLower(name)
	return kind.New(resource.Definition{
		Group: authorizationv1.GroupName, Plural: singular + "s", Singular: singular, Kind: name,
		Namespaced: namespaced, Verbs: []string{"create"},
	}, kind.UnlistedOf[*T](&resource.Version{Name: "v1", Creater: answer}))
}

// subject answers a SubjectAccessReview.
func (r reviewer) subject(ctx context.Context, c *resource.Change, review *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	check := rule.NewCheck(ctx, c, tableOnly())
	validateSubject(check, &review.Spec)
	validateMetadata(check, review.ObjectMeta)
	if err := refuse(check); err != nil {
		return nil, err
	}
	review.Status = r.status(ctx, attributesOf(userOf(&review.Spec), review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes))
	return review, nil
}

// local answers a LocalSubjectAccessReview, in its namespace.
func (r reviewer) local(ctx context.Context, c *resource.Change, review *authorizationv1.LocalSubjectAccessReview) (*authorizationv1.LocalSubjectAccessReview, error) {
	check := rule.NewCheck(ctx, c, tableOnly())
	validateSubject(check, &review.Spec)
	validateLocal(check, review)
	if err := refuse(check); err != nil {
		return nil, err
	}
	review.Status = r.status(ctx, attributesOf(userOf(&review.Spec), review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes))
	return review, nil
}

// self answers a SelfSubjectAccessReview for the user of the request.
func (r reviewer) self(ctx context.Context, c *resource.Change, review *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
	check := rule.NewCheck(ctx, c, tableOnly())
	validateSelf(check, &review.Spec)
	validateMetadata(check, review.ObjectMeta)
	if err := refuse(check); err != nil {
		return nil, err
	}
	u := request.UserFrom(ctx)
	if u == nil {
		return nil, status.BadRequest("no user present on request")
	}
	review.Status = r.status(ctx, attributesOf(u, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes))
	return review, nil
}

// rules lists the rules for the user of the request in a namespace, as far as authorizers can list
// them.
func (r reviewer) rules(ctx context.Context, _ *resource.Change, review *authorizationv1.SelfSubjectRulesReview) (*authorizationv1.SelfSubjectRulesReview, error) {
	u := request.UserFrom(ctx)
	switch {
	case u == nil:
		return nil, status.BadRequest("no user present on request")
	case review.Spec.Namespace == "":
		return nil, status.BadRequest("no namespace on request")
	}
	rules, incomplete, err := authz.RulesFor(ctx, r.Authorizer, u, review.Spec.Namespace)
	answer := &authorizationv1.SelfSubjectRulesReview{Status: rulesStatus(rules)}
	answer.Status.Incomplete = incomplete
	if err != nil {
		answer.Status.EvaluationError = err.Error()
	}
	return answer, nil
}

func rulesStatus(rules []rbacv1.PolicyRule) authorizationv1.SubjectRulesReviewStatus {
	s := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	for _, r := range rules {
		if len(r.Resources) > 0 {
			s.ResourceRules = append(s.ResourceRules, authorizationv1.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
		}
		if len(r.NonResourceURLs) > 0 {
			s.NonResourceRules = append(s.NonResourceRules, authorizationv1.NonResourceRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	return s
}

// status calls the authorizer.
func (r reviewer) status(ctx context.Context, a *authz.Attributes) authorizationv1.SubjectAccessReviewStatus {
	decision, reason, err := r.Authorize(ctx, a)
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authz.Allow, Denied: decision == authz.Deny, Reason: reason, EvaluationError: evaluationError(a, err),
	}
}

// refuse returns the errors of a review. As in Kubernetes, they do not name the kind.
func refuse(c *rule.Check) error {
	if errs := c.Errors(); len(errs) > 0 {
		return status.Invalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
	}
	return nil
}

var tableOnly = rule.Lazy()
