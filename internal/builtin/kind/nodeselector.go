package kind

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// ValidateNodeSelector validates a node selector at c. With anyValue, values need not be valid
// label values.
func ValidateNodeSelector(c *rule.Check, s *corev1.NodeSelector, anyValue bool) {
	c = c.At("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		c.Required("must have at least one node selector term")
	}
	for i := range s.NodeSelectorTerms {
		ValidateNodeSelectorTerm(c.At(i), &s.NodeSelectorTerms[i], anyValue)
	}
}

// ValidateNodeSelectorTerm validates one term of a node selector.
func ValidateNodeSelectorTerm(c *rule.Check, term *corev1.NodeSelectorTerm, anyValue bool) {
	for i := range term.MatchExpressions {
		validateNodeLabel(c.At("matchExpressions", i), &term.MatchExpressions[i], anyValue)
	}
	for i := range term.MatchFields {
		validateNodeField(c.At("matchFields", i), &term.MatchFields[i])
	}
}

func validateNodeLabel(c *rule.Check, r *corev1.NodeSelectorRequirement, anyValue bool) {
	values := c.At("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			values.Required("must be specified when `operator` is 'In' or 'NotIn'")
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			values.Forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			values.Required("must be specified single value when `operator` is 'Lt' or 'Gt'")
		}
	default:
		c.At("operator").Invalid(r.Operator, "not a valid selector operator")
	}
	c.Add(metavalidation.ValidateLabelName(r.Key, c.At("key").Path())...)
	if anyValue {
		return
	}
	for i, v := range r.Values {
		values.At(i).Invalids(v, validation.IsValidLabelValue(v))
	}
}

func validateNodeField(c *rule.Check, r *corev1.NodeSelectorRequirement) {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) != 1 {
			c.At("values").Required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
		}
	default:
		c.At("operator").Invalid(r.Operator, "not a valid selector operator")
	}
	if r.Key != metav1.ObjectNameField {
		c.At("key").Invalid(r.Key, "not a valid field selector key")
		return
	}
	for i, v := range r.Values {
		c.At("values", i).Invalids(v, apivalidation.NameIsDNSSubdomain(v, false))
	}
}

// HasAnyValue reports whether a selector has a value that is not a valid label value.
func HasAnyValue(s *corev1.NodeSelector) bool {
	return s != nil && slices.ContainsFunc(s.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return slices.ContainsFunc(r.Values, func(v string) bool { return len(validation.IsValidLabelValue(v)) > 0 })
		})
	})
}

// oldNodeLabels are deprecated node labels, with their warnings.
var oldNodeLabels = map[string]string{
	"app.kubernetes.io/created-by":                  "deprecated since v1.9",
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
	"scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
}

// WarnOfNodeLabel warns about a deprecated node label. c is at the field that names it.
func WarnOfNodeLabel(c *rule.Check, label string) {
	if old, ok := oldNodeLabels[label]; ok {
		c.Warn("%s: %s", c.Path(), old)
	}
}

// WarnOfNodeSelectorTerm warns about deprecated node labels in a term and, with ofValues, about
// invalid label values.
func WarnOfNodeSelectorTerm(c *rule.Check, term *corev1.NodeSelectorTerm, ofValues bool) {
	for i, r := range term.MatchExpressions {
		at := c.At("matchExpressions", i)
		WarnOfNodeKey(at.At("key"), r.Key)
		if !ofValues {
			continue
		}
		for j, v := range r.Values {
			for _, detail := range validation.IsValidLabelValue(v) {
				c.Warn("%s: %s is invalid, %s", at.At("values", j).Path(), v, detail)
			}
		}
	}
}

// WarnOfNodeLabels warns about deprecated node labels in a label selector.
func WarnOfNodeLabels(c *rule.Check, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	for i, r := range s.MatchExpressions {
		WarnOfNodeKey(c.At("matchExpressions", i, "key"), r.Key)
	}
	for _, label := range SortedKeys(s.MatchLabels) {
		WarnOfNodeLabel(c.At("matchLabels", label), label)
	}
}

// WarnOfNodeKey warns about a key that is a deprecated node label. c is at the key.
func WarnOfNodeKey(c *rule.Check, key string) {
	if old, ok := oldNodeLabels[key]; ok {
		c.Warn("%s: %s is %s", c.Path(), key, old)
	}
}
