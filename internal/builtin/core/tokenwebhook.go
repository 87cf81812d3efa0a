package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

const (
	// reviewedGroups is the attestation of the API groups whose objects the bearer of a token sends to a webhook.
	reviewedGroups = authenticationv1.AttestationAdmissionReviewAPIGroups
	// anyGroup is the value for all groups.
	anyGroup = "*"
	// webhookSeconds is the longest lifetime of a token for a webhook.
	webhookSeconds = 10 * 60
)

// isWebhook reports whether a token is bound to a webhook configuration.
func isWebhook(ref *authenticationv1.BoundObjectReference) bool {
	return ref != nil && ref.APIVersion == admissionregistrationv1.SchemeGroupVersion.String() &&
		(ref.Kind == "ValidatingWebhookConfiguration" || ref.Kind == "MutatingWebhookConfiguration")
}

// validateAttestations validates the attestations of a token for a webhook.
func validateAttestations(all map[string]authenticationv1.AttestationValue, at *field.Path) field.ErrorList {
	if len(all) != 1 {
		return field.ErrorList{field.Invalid(at, all, "webhook bound requests require exactly one admissionReviewAPIGroups attestation")}
	}
	groups, ok := all[reviewedGroups]
	if !ok {
		for name := range all {
			return field.ErrorList{field.NotSupported(at.Key(name), name, []string{reviewedGroups})}
		}
	}
	at = at.Key(reviewedGroups)
	switch {
	case len(groups) != 1:
		return field.ErrorList{field.Invalid(at, groups, "must specify a single value")}
	case groups[0] == "":
		return field.ErrorList{field.Invalid(at.Index(0), groups[0], "may not be an empty string")}
	case groups[0] == anyGroup:
		return nil
	}
	var errs field.ErrorList
	for _, reason := range validation.IsDNS1123Subdomain(groups[0]) {
		errs = append(errs, field.Invalid(at.Index(0), groups[0], "must specify a valid API Group: "+reason))
	}
	return errs
}

// bindWebhook adds a webhook configuration to the grant of a valid request. Callers without the configuration learn nothing about
// it.
func (t *tokenCreater) bindWebhook(ctx context.Context, c *resource.Change, asked *authenticationv1.TokenRequestSpec, g *serviceaccount.Grant) (uid string, err error) {
	ref, group := asked.BoundObjectRef, asked.Attestations[reviewedGroups][0]
	if !c.Gates.On(gate.APIServerWebhookAuthenticationToken) {
		of := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
		return "", status.BadRequest("cannot bind token to object of type %s (feature gate %s is disabled)", of, gate.APIServerWebhookAuthenticationToken)
	}
	if slices.Contains(t.issuer.Audiences(), g.Audiences[0]) {
		return "", status.BadRequest("api server audiences are invalid for webhook token requests")
	}
	g.Seconds = min(g.Seconds, webhookSeconds)
	if err := t.mayAttest(ctx, g, group); err != nil {
		return "", err
	}
	of, to := t.mutating, &g.Mutating
	if ref.Kind == "ValidatingWebhookConfiguration" {
		of, to = t.validating, &g.Validating
	}
	configuration, err := c.Objects.Get(ctx, of, "", ref.Name)
	if err != nil || isOver(configuration) || group != anyGroup && !calls(configuration, group, g.Audiences[0]) {
		return "", status.Forbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, c.Name, errors.New("token request denied"))
	}
	*to = referenceTo(configuration)
	g.Attestations = map[string][]string{reviewedGroups: {group}}
	return object.UID(configuration), nil
}

// mayAttest checks that an account may attest that it sends objects of a group to webhooks.
func (t *tokenCreater) mayAttest(ctx context.Context, g *serviceaccount.Grant, group string) error {
	return authz.Require(ctx, t.authorizer, &authz.Attributes{
		User: &request.User{Name: request.ServiceAccount(g.Namespace, g.Account.Name), UID: g.Account.UID, Groups: request.ServiceAccountGroups(g.Namespace)},
		Info: request.Info{
			IsResource: true, Verb: "attest", Group: authenticationv1.GroupName, Version: "*", Resource: reviewedGroups, Name: group,
		},
	})
}

// isOver reports whether the deletion time of an object has passed.
func isOver(obj map[string]any) bool {
	at, ok := object.DeletionTime(obj)
	return ok && time.Now().After(at)
}

// calls reports whether one webhook of a configuration is called at an audience for objects of a group.
func calls(configuration map[string]any, group, audience string) bool {
	// Both kinds have these fields.
	for _, hook := range kind.ValueOf[admissionregistrationv1.ValidatingWebhookConfiguration](configuration).Webhooks {
		if isAt(&hook.ClientConfig, audience) && slices.ContainsFunc(hook.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(r.APIGroups, "*") || slices.Contains(r.APIGroups, group)
		}) {
			return true
		}
	}
	return false
}

// isAt reports whether an audience is the URL of a webhook: that in the configuration, or the one of its Service.
func isAt(c *admissionregistrationv1.WebhookClientConfig, audience string) bool {
	if c.URL != nil && *c.URL == audience {
		return true
	}
	s := c.Service
	if s == nil {
		return false
	}
	port, path := int32(443), "/"
	if s.Port != nil {
		port = *s.Port
	}
	if s.Path != nil {
		path += strings.TrimPrefix(*s.Path, "/")
	}
	return audience == fmt.Sprintf("https://%s.%s.svc:%d%s", s.Name, s.Namespace, port, path)
}
