package pod

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

const notAWeight = "must be in the range 1-100"

func isWeight(n int32) bool { return n > 0 && n <= 100 }

func checkNodeAffinity(c *rule.Check, a *corev1.NodeAffinity) {
	if s := a.RequiredDuringSchedulingIgnoredDuringExecution; s != nil {
		kind.ValidateNodeSelector(c.At("requiredDuringSchedulingIgnoredDuringExecution"), s, rule.Given[inherited](c).nodeValues)
	}
	for i, t := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		at := c.At("preferredDuringSchedulingIgnoredDuringExecution", i)
		if !isWeight(t.Weight) {
			at.At("weight").Invalid(t.Weight, notAWeight)
		}
		kind.ValidateNodeSelectorTerm(at.At("preference"), &t.Preference, true)
	}
}

func checkWeightedTerm(c *rule.Check, t *corev1.WeightedPodAffinityTerm) {
	if !isWeight(t.Weight) {
		c.At("weight").Invalid(t.Weight, notAWeight)
	}
}

func checkPodAffinityTerm(c *rule.Check, t *corev1.PodAffinityTerm) {
	checkTermSelectors(c, t, rule.Given[inherited](c).podValues)
	for _, n := range t.Namespaces {
		c.At("namespace").Invalids(n, apivalidation.ValidateNamespaceName(n, false))
	}
	checkLabelKeys(c, t.MatchLabelKeys, t.MismatchLabelKeys, t.LabelSelector)
	key := c.At("topologyKey")
	if t.TopologyKey == "" {
		key.Required("can not be empty")
	}
	key.Add(metavalidation.ValidateLabelName(t.TopologyKey, key.Path())...)
}

func checkTermSelectors(c *rule.Check, t *corev1.PodAffinityTerm, anyValue bool) {
	checkSelector(c.At("labelSelector"), t.LabelSelector, anyValue)
	checkSelector(c.At("namespaceSelector"), t.NamespaceSelector, anyValue)
}

func checkSelector(c *rule.Check, s *metav1.LabelSelector, anyValue bool) {
	c.Add(metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: anyValue}, c.Path())...)
}

// checkLabelKeys validates matchLabelKeys and mismatchLabelKeys, whose labels prepare merges into
// the selector. The selector may already have them.
func checkLabelKeys(c *rule.Check, match, mismatch []string, selector *metav1.LabelSelector) {
	for name, keys := range map[string][]string{"matchLabelKeys": match, "mismatchLabelKeys": mismatch} {
		at := c.At(name)
		if len(keys) > 0 && selector == nil {
			at.Forbidden("must not be specified when labelSelector is not set")
			continue
		}
		for i, k := range keys {
			at.Add(metavalidation.ValidateLabelName(k, at.At(i).Path())...)
		}
	}
	both := sets.New(mismatch...)
	for i, k := range match {
		if both.Has(k) {
			c.At("matchLabelKeys", i).Invalid(k, "exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
	if selector == nil {
		return
	}
	index := map[string]int{}
	for i, k := range match {
		index[k] = i
	}
	selected := sets.KeySet(selector.MatchLabels)
	for _, e := range selector.MatchExpressions {
		// One expression is the merged one.
		if i, ok := index[e.Key]; ok && selected.Has(e.Key) {
			c.At(i).Invalid(e.Key, inSelector)
		}
		selected.Insert(e.Key)
	}
}

const inSelector = "exists in both matchLabelKeys and labelSelector"

// checkOldLabelKeys is checkLabelKeys for pods whose keys are not merged into selectors.
func checkOldLabelKeys(c *rule.Check, match []string, selector *metav1.LabelSelector) {
	if len(match) == 0 {
		return
	}
	c = c.At("matchLabelKeys")
	selected := sets.New[string]()
	if selector == nil {
		c.Forbidden("must not be specified when labelSelector is not set")
	} else {
		selected = sets.KeySet(selector.MatchLabels)
		for _, e := range selector.MatchExpressions {
			selected.Insert(e.Key)
		}
	}
	for i, k := range match {
		c.Add(metavalidation.ValidateLabelName(k, c.At(i).Path())...)
		if selected.Has(k) {
			c.At(i).Invalid(k, inSelector)
		}
	}
}

func checkSpread(c *rule.Check, s *corev1.TopologySpreadConstraint) {
	const positive = "must be greater than zero"
	if s.MaxSkew <= 0 {
		c.At("maxSkew").Invalid(int64(s.MaxSkew), positive)
	}
	if s.TopologyKey == "" {
		c.At("topologyKey").Required("can not be empty")
	}
	known(c.At("whenUnsatisfiable"), s.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
	if n, at := s.MinDomains, c.At("minDomains"); n != nil {
		if *n <= 0 {
			at.Invalid(int64(*n), positive)
		}
		if s.WhenUnsatisfiable != corev1.DoNotSchedule {
			at.Invalid(*n, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, s.WhenUnsatisfiable))
		}
	}
	for name, policy := range map[string]*corev1.NodeInclusionPolicy{"nodeAffinityPolicy": s.NodeAffinityPolicy, "nodeTaintsPolicy": s.NodeTaintsPolicy} {
		if policy != nil {
			known(c.At(name), *policy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
		}
	}
	had := rule.Given[inherited](c)
	if mergesSpread(c.Gates) != had.labelKeys {
		checkLabelKeys(c, s.MatchLabelKeys, nil, s.LabelSelector)
	} else {
		checkOldLabelKeys(c, s.MatchLabelKeys, s.LabelSelector)
	}
	if !had.spreadSelector {
		checkSelector(c.At("labelSelector"), s.LabelSelector, false)
	}
}

// checkSpreadOnce rejects a duplicate of the first constraint.
func checkSpreadOnce(c *rule.Check, constraints []corev1.TopologySpreadConstraint) {
	first := constraints[0]
	for _, s := range constraints[1:] {
		if s.TopologyKey == first.TopologyKey && s.WhenUnsatisfiable == first.WhenUnsatisfiable {
			c.At("{topologyKey, whenUnsatisfiable}").Duplicate(fmt.Sprintf("{%v, %v}", first.TopologyKey, first.WhenUnsatisfiable))
			return
		}
	}
}

func checkToleration(c *rule.Check, t *corev1.Toleration) {
	operator := c.At("operator")
	if t.Key != "" {
		c.Add(metavalidation.ValidateLabelName(t.Key, c.At("key").Path())...)
	} else if t.Operator != corev1.TolerationOpExists {
		operator.Invalid(t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		c.At("effect").Invalid(t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		if details := validation.IsValidLabelValue(t.Value); len(details) > 0 {
			operator.Invalid(t.Value, strings.Join(details, ";"))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			operator.Invalid(t.Value, "value must be empty when `operator` is 'Exists'")
		}
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		checkComparison(c, t)
	default:
		known(operator, t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists)
	}
	if t.Effect != "" {
		known(c.At("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
	}
}

// checkComparison validates a toleration with a numeric operator.
func checkComparison(c *rule.Check, t *corev1.Toleration) {
	if !rule.Given[inherited](c).comparisons {
		rule.NotSupported(c.At("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)
		return
	}
	value := c.At("value")
	value.Invalids(t.Value, content.IsDecimalInteger(t.Value))
	if _, err := strconv.ParseInt(t.Value, 10, 64); err != nil {
		value.Invalid(t.Value, err.Error())
	}
}

// ValidateTolerations validates tolerations outside of a pod.
func ValidateTolerations(tolerations []corev1.Toleration, at ...any) field.ErrorList {
	c := rule.NewCheck(context.Background(), &resource.Change{}, nil)
	rule.With(c, &inherited{})
	for i := range tolerations {
		checkToleration(c.At(at...).At(i), &tolerations[i])
	}
	return c.Errors()
}
