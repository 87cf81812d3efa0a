package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

var resourceRules = rule.Lazy(kind.ResourceLists)

func resourceQuotas() *resource.Definition {
	return kind.Kind[*corev1.ResourceQuota, *corev1.ResourceQuotaList]{
		Definition: resource.Definition{
			Plural: "resourcequotas", ShortNames: []string{"quota"}, Namespaced: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		StatusKeeps: "spec",
		Rules:       resourceRules,
		Validate:    validateQuota,
		ValidateStatus: func(c *rule.Check, quota, _ *corev1.ResourceQuota) {
			validateQuotaAmounts(c.At("status", "hard"), quota.Status.Hard)
			validateQuotaAmounts(c.At("status", "used"), quota.Status.Used)
		},
		Warn: warnOfQuota,
		Columns: `
			Request  string  requests  "Request represents a minimum amount of cpu/memory that a container may consume."
			Limit    string  limits    "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."
			Age
		`,
		Cells: kind.Cells{
			"requests": func(obj map[string]any) any { return shownQuota(obj, false) },
			"limits":   func(obj map[string]any) any { return shownQuota(obj, true) },
		},
	}.New()
}

// shownQuota formats used and hard amounts.
func shownQuota(obj map[string]any, limits bool) string {
	var shown []string
	hard, used := kind.Pairs(obj, "status", "hard"), kind.Pairs(obj, "status", "used")
	for _, name := range kind.SortedKeys(hard) {
		if strings.HasPrefix(name, "limits.") == limits {
			n := used[name]
			if n == "" {
				n = "0"
			}
			shown = append(shown, fmt.Sprintf("%s: %s/%s", name, n, hard[name]))
		}
	}
	return strings.Join(shown, ", ")
}

func validateQuotaAmounts(c *rule.Check, list corev1.ResourceList) {
	for _, name := range kind.SortedKeys(list) {
		at := c.AtKey(string(name))
		kind.ValidateQuotaResource(at, name)
		kind.ValidateAmountOf(at, name, list[name])
	}
}

func validateQuota(c *rule.Check, quota, old *corev1.ResourceQuota) {
	spec := &quota.Spec
	validateQuotaAmounts(c.At("spec", "hard"), spec.Hard)
	scopes := c.At("spec", "scopes")
	validateScopes(scopes, spec.Scopes, spec)
	if spec.ScopeSelector != nil {
		validateScopeSelector(c.At("spec", "scopeSelector", "matchExpressions"), spec)
	}
	if old == nil {
		return
	}
	missing := func(in []corev1.ResourceQuotaScope) func(corev1.ResourceQuotaScope) bool {
		return func(s corev1.ResourceQuotaScope) bool { return !slices.Contains(in, s) }
	}
	if slices.ContainsFunc(spec.Scopes, missing(old.Spec.Scopes)) || slices.ContainsFunc(old.Spec.Scopes, missing(spec.Scopes)) {
		scopes.Invalid(spec.Scopes, "field is immutable")
	}
}

func validateScopes(c *rule.Check, scopes []corev1.ResourceQuotaScope, spec *corev1.ResourceQuotaSpec) {
	for _, s := range scopes {
		if !isScope(s) {
			c.Invalid(scopes, "unsupported scope")
		}
		for range outOfScope(s, spec.Hard) {
			c.Invalid(scopes, "unsupported scope applied to resource")
		}
	}
	conflictsOfScopes(c, scopes, spec)
}

func conflictsOfScopes(c *rule.Check, scopes []corev1.ResourceQuotaScope, spec *corev1.ResourceQuotaSpec) {
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			c.Invalid(spec.Scopes, "conflicting scopes")
		}
	}
}

// ofScope are the resources of pods and claims that a quota with a scope can limit.
var (
	ofPods = []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	}
	ofScope = map[corev1.ResourceQuotaScope][]corev1.ResourceName{
		corev1.ResourceQuotaScopeTerminating:               ofPods,
		corev1.ResourceQuotaScopeNotTerminating:            ofPods,
		corev1.ResourceQuotaScopeNotBestEffort:             ofPods,
		corev1.ResourceQuotaScopePriorityClass:             ofPods,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity: ofPods,
		corev1.ResourceQuotaScopeBestEffort:                ofPods[:1],
		corev1.ResourceQuotaScopeVolumeAttributesClass:     {corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage},
	}
)

func isScope(s corev1.ResourceQuotaScope) bool { return ofScope[s] != nil }

// outOfScope returns the resources that do not support a scope.
func outOfScope(s corev1.ResourceQuotaScope, hard corev1.ResourceList) (out []corev1.ResourceName) {
	for _, name := range kind.SortedKeys(hard) {
		if isScope(s) && kind.IsOfQuota(name) && !slices.Contains(ofScope[s], name) {
			out = append(out, name)
		}
	}
	return out
}

func validateScopeSelector(c *rule.Check, spec *corev1.ResourceQuotaSpec) {
	var scopes []corev1.ResourceQuotaScope
	for _, r := range spec.ScopeSelector.MatchExpressions {
		if !isScope(r.ScopeName) {
			c.At("scopeName").Invalid(r.ScopeName, "unsupported scope")
		}
		for range outOfScope(r.ScopeName, spec.Hard) {
			c.Invalid(spec.ScopeSelector, "unsupported scope applied to resource")
		}
		valued := r.ScopeName == corev1.ResourceQuotaScopePriorityClass || r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass
		if isScope(r.ScopeName) && !valued && r.Operator != corev1.ScopeSelectorOpExists {
			c.At("operator").Invalid(r.Operator, "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "+
				"ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity")
		}
		switch r.Operator {
		case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
			if len(r.Values) == 0 {
				c.At("values").Required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
			}
		case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				c.At("values").Invalid(r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
			}
		default:
			c.At("operator").Invalid(r.Operator, "not a valid selector operator")
		}
		scopes = append(scopes, r.ScopeName)
	}
	conflictsOfScopes(c, scopes, spec)
}

// warnOfQuota warns about a new quota whose requests exceed its limits.
func warnOfQuota(c *rule.Check, quota, old *corev1.ResourceQuota) {
	if old != nil {
		return
	}
	hard := quota.Spec.Hard
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage} {
		asked, most := corev1.DefaultResourceRequestsPrefix+name, "limits."+name
		request, ok := hard[asked]
		if !ok && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			asked = name
			request, ok = hard[asked]
		}
		if limit, limited := hard[most]; ok && limited && request.Cmp(limit) > 0 {
			c.Warn("ResourceQuota %s (%s) should be less than %s (%s)", asked, request.String(), most, limit.String())
		}
	}
}
