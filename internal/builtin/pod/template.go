package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// Rules are the rules and defaults in Go of all types of a template.
var Rules = rule.All(
	volume.Rules,
	containerRules,
	specRules,
)

// ValidateTemplate finds what is wrong with a template, at which c looks. old is the one
// that it takes the place of, or nil: what that had already may stay.
func ValidateTemplate(c *rule.Check, t, old *corev1.PodTemplateSpec) {
	var oldSpec *corev1.PodSpec
	if old != nil {
		oldSpec = &old.Spec
	}
	giveContext(c.At("spec"), &t.Spec, oldSpec, "")
	c.Walk(t)
}
