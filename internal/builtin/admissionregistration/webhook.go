package admissionregistration

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	crdvalidation "github.com/anykind/anykind/internal/schema/crd/validation"
)

// Both kinds of webhooks have the same fields, except reinvocationPolicy. Both are validated as
// validating webhooks.

func shared(hooks []admissionv1.MutatingWebhook) []admissionv1.ValidatingWebhook {
	out := make([]admissionv1.ValidatingWebhook, len(hooks))
	for i, h := range hooks {
		out[i] = admissionv1.ValidatingWebhook{
			Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy,
			MatchPolicy: h.MatchPolicy, NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector,
			SideEffects: h.SideEffects, TimeoutSeconds: h.TimeoutSeconds,
			AdmissionReviewVersions: h.AdmissionReviewVersions, MatchConditions: h.MatchConditions,
		}
	}
	return out
}

func validateMutatingWebhooks(c *rule.Check, obj, old *admissionv1.MutatingWebhookConfiguration) {
	var before []admissionv1.ValidatingWebhook
	if old != nil {
		before = shared(old.Webhooks)
	}
	c.Walk(&obj.Webhooks, "webhooks")
	validateName(c, obj)
	validateWebhooks(c, shared(obj.Webhooks), before)
}

func validateValidatingWebhooks(c *rule.Check, obj, old *admissionv1.ValidatingWebhookConfiguration) {
	var before []admissionv1.ValidatingWebhook
	if old != nil {
		before = old.Webhooks
	}
	c.Walk(&obj.Webhooks, "webhooks")
	validateName(c, obj)
	validateWebhooks(c, obj.Webhooks, before)
}

// An allowance lists invalid values that are accepted because the old webhooks have them.
type allowance struct {
	sideEffects, versions, names, labelValues, conditions bool
	expressions                                           sets.Set[string]
}

func allow(hooks, old []admissionv1.ValidatingWebhook, update bool) allowance {
	a := allowance{expressions: sets.New[string]()}
	if !update {
		return a
	}
	names := sets.New[string]()
	for _, h := range old {
		a.sideEffects = a.sideEffects || !hasNoSideEffects(h)
		a.versions = a.versions || len(h.AdmissionReviewVersions) > 0 && !isUnderstood(h)
		a.names = a.names || names.Has(h.Name)
		names.Insert(h.Name)
		for _, s := range []*metav1.LabelSelector{h.NamespaceSelector, h.ObjectSelector} {
			a.labelValues = a.labelValues || s != nil && len(metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, nil)) > 0
		}
		for _, m := range h.MatchConditions {
			a.expressions.Insert(m.Expression)
		}
	}
	a.conditions = slices.EqualFunc(hooks, old, func(h, old admissionv1.ValidatingWebhook) bool {
		return reflect.DeepEqual(h.MatchConditions, old.MatchConditions)
	})
	return a
}

// noSideEffects are the allowed side effects of a webhook, and reviews the supported versions of
// AdmissionReview.
var (
	noSideEffects = []admissionv1.SideEffectClass{admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun}
	sideEffects   = []admissionv1.SideEffectClass{
		admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun, admissionv1.SideEffectClassSome, admissionv1.SideEffectClassUnknown,
	}
	reviews = []string{"v1", "v1beta1"}
)

func hasNoSideEffects(h admissionv1.ValidatingWebhook) bool {
	return h.SideEffects != nil && slices.Contains(noSideEffects, *h.SideEffects)
}

func isUnderstood(h admissionv1.ValidatingWebhook) bool {
	return slices.ContainsFunc(h.AdmissionReviewVersions, func(v string) bool { return slices.Contains(reviews, v) })
}

func validateWebhooks(c *rule.Check, hooks, old []admissionv1.ValidatingWebhook) {
	allowed := allow(hooks, old, c.IsUpdate())
	names := sets.New[string]()
	for i, h := range hooks {
		at := c.At("webhooks", i)
		validateWebhook(at, h, allowed)
		if h.Name != "" && names.Has(h.Name) && !allowed.names {
			at.At("name").Duplicate(h.Name)
		}
		names.Insert(h.Name)
	}
}

func validateWebhook(c *rule.Check, h admissionv1.ValidatingWebhook, allowed allowance) {
	c.Add(validation.IsFullyQualifiedName(c.At("name").Path(), h.Name)...)
	may := noSideEffects
	if allowed.sideEffects {
		may = sideEffects
	}
	if h.SideEffects == nil {
		c.At("sideEffects").Required("must specify one of " + join(may))
	} else if !slices.Contains(may, *h.SideEffects) {
		rule.NotSupported(c.At("sideEffects"), *h.SideEffects, may...)
	}
	if s := h.TimeoutSeconds; s != nil && (*s > 30 || *s < 1) {
		c.At("timeoutSeconds").Invalid(*s, "the timeout value must be between 1 and 30 seconds")
	}
	if h.NamespaceSelector != nil {
		c.Add(selectorErrors(c.At("namespaceSelector"), h.NamespaceSelector, allowed.labelValues)...)
	}
	if h.ObjectSelector != nil {
		c.Add(selectorErrors(c.At("objectSelector"), h.ObjectSelector, allowed.labelValues)...)
	}
	c.Add(crdvalidation.Client(client(h.ClientConfig), c.At("clientConfig").Path())...)
	if !allowed.conditions {
		validateMatchConditions(c.At("matchConditions"), h.MatchConditions, expressions{conditions: allowed.expressions, compatible: c.Gates.Compatible()})
	}
	validateReviews(c.At("admissionReviewVersions"), h, allowed.versions)
}

func join[T ~string](all []T) string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return strings.Join(out, ", ")
}

func selectorErrors(c *rule.Check, s *metav1.LabelSelector, anyValue bool) field.ErrorList {
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: anyValue}, c.Path())
}

// client converts a client config to that of a conversion webhook.
func client(c admissionv1.WebhookClientConfig) *apiextensionsv1.WebhookClientConfig {
	out := &apiextensionsv1.WebhookClientConfig{URL: c.URL, CABundle: c.CABundle}
	if c.Service != nil {
		out.Service = (*apiextensionsv1.ServiceReference)(c.Service)
	}
	return out
}

func validateReviews(c *rule.Check, h admissionv1.ValidatingWebhook, anyVersion bool) {
	versions := h.AdmissionReviewVersions
	if len(versions) == 0 {
		c.Required("must specify one of " + strings.Join(reviews, ", "))
		return
	}
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			c.At(i).Invalid(v, "duplicate version")
			continue
		}
		c.At(i).Invalids(v, validation.IsDNS1035Label(v))
	}
	if !anyVersion && !isUnderstood(h) {
		c.Invalid(versions, "must include at least one of "+strings.Join(reviews, ", "))
	}
}

func warnOfMutatingWebhooks(c *rule.Check, obj, old *admissionv1.MutatingWebhookConfiguration) {
	warnOfName(c, obj, old)
	warnOfRules(c, shared(obj.Webhooks))
}

func warnOfValidatingWebhooks(c *rule.Check, obj, old *admissionv1.ValidatingWebhookConfiguration) {
	warnOfName(c, obj, old)
	warnOfRules(c, obj.Webhooks)
}

// unasked are the resources for which webhooks are never called.
var unasked = sets.New(
	metav1.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	metav1.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	metav1.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	metav1.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	metav1.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	metav1.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
)

// warnOfRules warns about rules for resources without webhooks.
func warnOfRules(c *rule.Check, hooks []admissionv1.ValidatingWebhook) {
	if !c.Gates.On(gate.ExcludeAdmissionWebhookVirtualResources) {
		return
	}
	for i, h := range hooks {
		for j, r := range h.Rules {
			if slices.Contains(r.APIGroups, all) || slices.Contains(r.Resources, all) {
				continue
			}
			reported := sets.New[metav1.GroupResource]()
			for _, group := range r.APIGroups {
				for _, name := range r.Resources {
					gr := metav1.GroupResource{Group: group, Resource: name}
					if unasked.Has(gr) && !reported.Has(gr) {
						reported.Insert(gr)
						c.Warn("%s: %s is excluded from admission webhooks; this rule will have no effect",
							c.At("webhooks", i, "rules", j).Path(), fmt.Sprintf("%s.%s", name, group))
					}
				}
			}
		}
	}
}
