package policy

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

func podDisruptionBudgets() *resource.Definition {
	return kind.Kind[*policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList]{
		Definition: resource.Definition{
			Group: policyv1.GroupName, Plural: "poddisruptionbudgets", ShortNames: []string{"pdb"},
			Namespaced: true, HasGeneration: true,
			Strategy: resource.Strategy{
				ValidateName: object.ValidatePathSegment, ValidatesMetadataLast: true, Prepare: resource.Changing(prepareBudget),
			},
		},
		StatusKeeps:    "spec",
		AnyFinalizers:  true,
		Validate:       validateBudget,
		ValidateStatus: validateBudgetStatus,
		Columns: `
			Min Available        string   min   "The minimum number of pods that must be available."
			Max Unavailable      string   max   "The maximum number of pods that may be unavailable."
			Allowed Disruptions  integer  .status.disruptionsAllowed  "Calculated number of pods that may be disrupted at this time."
			Age
		`,
		Cells: kind.Cells{"min": limit("minAvailable"), "max": limit("maxUnavailable")},
	}.New()
}

// limit returns a function for the cell of a number or a percentage.
func limit(field string) func(map[string]any) any {
	return func(obj map[string]any) any {
		if v := kind.Value(obj, "spec", field); v != nil {
			return fmt.Sprint(v)
		}
		return "N/A"
	}
}

// oldLabel is the label key of a selector converted from policy/v1beta1 that matched nothing. Other
// selectors must not have it.
const oldLabel = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

// prepareBudget drops requirements with oldLabel from a new or changed selector, unless it has the
// form that policy/v1beta1 was converted to.
func prepareBudget(obj, old map[string]any) {
	spec := kind.Tree(obj, "spec")
	now, was := kind.ValueOf[metav1.LabelSelector](kind.Tree(spec, "selector")), kind.ValueOf[metav1.LabelSelector](kind.Tree(old, "spec", "selector"))
	if now == nil || old != nil && equality.Semantic.DeepEqual(now, was) {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(now.MatchExpressions), func(r metav1.LabelSelectorRequirement) bool { return r.Key == oldLabel })
	if len(rest) == len(now.MatchExpressions) || len(now.MatchLabels) == 0 && len(now.MatchExpressions) == 1 && isOldRequirement(now.MatchExpressions[0]) {
		return
	}
	selector := kind.Tree(spec, "selector")
	left := slices.DeleteFunc(slices.Clone(kind.List(selector, "matchExpressions")), func(r any) bool {
		requirement, _ := r.(map[string]any)
		return kind.Text(requirement, "key") == oldLabel
	})
	if kind.Put(selector, "matchExpressions", left); len(left) == 0 {
		delete(selector, "matchExpressions")
	}
}

func isOldRequirement(r metav1.LabelSelectorRequirement) bool {
	return len(r.Values) == 0 && (r.Operator == metav1.LabelSelectorOpExists || r.Operator == metav1.LabelSelectorOpDoesNotExist)
}

func validateBudget(c *rule.Check, b, old *policyv1.PodDisruptionBudget) {
	spec := &b.Spec
	options := metavalidation.LabelSelectorValidationOptions{}
	if old != nil && old.Spec.Selector != nil {
		options.AllowInvalidLabelValueInSelector = len(metavalidation.ValidateLabelSelector(old.Spec.Selector, options, nil)) > 0
	}
	c.Fields(spec, "spec")
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		c.At("spec").Invalid(*spec, "minAvailable and maxUnavailable cannot be both set")
	}
	c.Add(metavalidation.ValidateLabelSelector(spec.Selector, options, c.At("spec", "selector").Path())...)
}

func validateBudgetStatus(c *rule.Check, b, _ *policyv1.PodDisruptionBudget) {
	c.Fields(&b.Status, "status")
	c.At("status", "conditions").Conditions(b.Status.Conditions)
}
