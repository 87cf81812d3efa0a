package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// Limits of pod failure policies and success policies.
const (
	maxRules            = 20
	maxExitCodes        = 255
	maxPodConditions    = 20
	maxSucceededIndexes = 64 * 1024
)

var (
	failureActions = []batchv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
	}
	exitCodeOperators = []batchv1.PodFailurePolicyOnExitCodesOperator{
		batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn,
	}
	conditionStatuses = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
)

// oneOf rejects a missing or unsupported value.
func oneOf[T ~string](c *rule.Check, value T, valid []T) {
	switch {
	case value == "":
		c.Required(fmt.Sprintf("valid values: %q", valid))
	case !slices.Contains(valid, value):
		rule.NotSupported(c, value, valid...)
	}
}

func validateFailurePolicy(c *rule.Check, spec *batchv1.JobSpec) {
	rules := spec.PodFailurePolicy.Rules
	if len(rules) > maxRules {
		c.TooMany(len(rules), maxRules)
	}
	containers := map[string]bool{}
	for _, list := range [][]corev1.Container{spec.Template.Spec.Containers, spec.Template.Spec.InitContainers} {
		for i := range list {
			containers[list[i].Name] = true
		}
	}
	for i := range rules {
		r, at := &rules[i], c.At(i)
		oneOf(at.At("action"), r.Action, failureActions)
		if r.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil {
			at.At("action").Invalid(r.Action, "requires the backoffLimitPerIndex to be set")
		}
		if r.OnExitCodes != nil {
			validateExitCodes(at.At("onExitCodes"), r.OnExitCodes, containers)
		}
		validatePodConditions(at.At("onPodConditions"), r.OnPodConditions)
		switch conditions := len(r.OnPodConditions) > 0; {
		case r.OnExitCodes != nil && conditions:
			at.Invalid(field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported")
		case r.OnExitCodes == nil && !conditions:
			at.Invalid(field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required")
		}
	}
}

func validateExitCodes(c *rule.Check, r *batchv1.PodFailurePolicyOnExitCodesRequirement, containers map[string]bool) {
	oneOf(c.At("operator"), r.Operator, exitCodeOperators)
	if name := r.ContainerName; name != nil && !containers[*name] {
		c.At("containerName").Invalid(*name, "must be one of the container or initContainer names in the pod template")
	}
	at := c.At("values")
	switch n := len(r.Values); {
	case n == 0:
		at.Invalid(r.Values, "at least one value is required")
	case n > maxExitCodes:
		at.TooMany(n, maxExitCodes)
	}
	for i, code := range r.Values {
		if r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && code == 0 {
			at.At(i).Invalid(code, "must not be 0 for the In operator")
		}
		if slices.Contains(r.Values[:i], code) {
			at.At(i).Duplicate(code)
		}
	}
	if !slices.IsSorted(r.Values) {
		at.Invalid(r.Values, "must be ordered")
	}
}

func validatePodConditions(c *rule.Check, patterns []batchv1.PodFailurePolicyOnPodConditionsPattern) {
	if n := len(patterns); n > maxPodConditions {
		c.TooMany(n, maxPodConditions)
	}
	for i, p := range patterns {
		c.At(i, "type").Invalids(string(p.Type), validation.IsQualifiedName(string(p.Type)))
		oneOf(c.At(i, "status"), p.Status, conditionStatuses)
	}
}

func validateSuccessPolicy(c *rule.Check, spec *batchv1.JobSpec) {
	if ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion {
		c.Invalid(*spec.SuccessPolicy, "requires indexed completion mode")
		return
	}
	c, rules := c.At("rules"), spec.SuccessPolicy.Rules
	if len(rules) == 0 {
		c.Required("at least one rules must be specified when the successPolicy is specified")
	}
	if len(rules) > maxRules {
		c.TooMany(len(rules), maxRules)
	}
	for i := range rules {
		validateSuccessRule(c.At(i), &rules[i], ptr.Deref(spec.Completions, 0))
	}
}

func validateSuccessRule(c *rule.Check, r *batchv1.SuccessPolicyRule, completions int32) {
	if r.SucceededCount == nil && r.SucceededIndexes == nil {
		c.Required("at least one of succeededCount or succeededIndexes must be specified")
	}
	indexes := int32(0)
	if text := r.SucceededIndexes; text != nil {
		at := c.At("succeededIndexes")
		if len(*text) > maxSucceededIndexes {
			at.TooLong(maxSucceededIndexes)
		}
		intervals, err := parseIndexes(*text, completions)
		if err != nil {
			at.Invalid(*text, fmt.Sprintf("error parsing succeededIndexes: %s", err))
		}
		for _, in := range intervals {
			indexes += in.last - in.first + 1
		}
	}
	n := r.SucceededCount
	if n == nil {
		return
	}
	c.Fields(r)
	at := c.At("succeededCount")
	if *n > completions {
		at.Invalid(*n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions))
	}
	if r.SucceededIndexes != nil && *n > indexes {
		at.Invalid(*n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", indexes))
	}
}
