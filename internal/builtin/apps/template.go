package apps

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// validateSelector validates the selector of a kind, which must not be empty.
func validateSelector(c *rule.Check, s *metav1.LabelSelector, kind string, options metavalidation.LabelSelectorValidationOptions) {
	if s == nil {
		c.Required("")
		return
	}
	c.Add(metavalidation.ValidateLabelSelector(s, options, c.Path())...)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		c.Invalid(s, "empty selector is invalid for "+kind)
	}
}

// validateLabels rejects the template at c if the selector does not match its labels.
func validateLabels(c *rule.Check, t *corev1.PodTemplateSpec, selector labels.Selector) {
	if !selector.Matches(labels.Set(t.Labels)) {
		c.At("metadata", "labels").Invalid(t.Labels, "`selector` does not match template `labels`")
	}
}

// validateRunning rejects the template at c if its pods would end: by their restart policy or an
// active deadline.
func validateRunning[T ~string](c *rule.Check, t *corev1.PodTemplateSpec, kind string, always T) {
	if p := t.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		rule.NotSupported(c.At("spec", "restartPolicy"), p, always)
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		c.At("spec", "activeDeadlineSeconds").Forbidden("activeDeadlineSeconds in " + kind + " is not Supported")
	}
}

// validateReplicated validates selector and template of a Deployment or a ReplicaSet.
func validateReplicated(c *rule.Check, selector *metav1.LabelSelector, t, old *corev1.PodTemplateSpec) {
	at := c.At("spec", "selector")
	validateSelector(at, selector, "deployment", metavalidation.LabelSelectorValidationOptions{})
	matches, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		at.Invalid(selector, "invalid label selector")
		pod.ValidateDeclared(c.At("spec", "template"), t, old)
		return
	}
	at = c.At("spec", "template")
	if !matches.Empty() {
		validateLabels(at, t, matches)
	}
	pod.ValidateTemplate(at, t, old)
	validateRunning(at, t, "ReplicaSet", string(corev1.RestartPolicyAlways))
}
