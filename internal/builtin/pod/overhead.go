package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// ValidateResources validates the resources of a container outside of a pod at c.
func ValidateResources(c *rule.Check, r *corev1.ResourceRequirements) {
	checkResources(c, r, kind.ValidateContainerResource, &podContext{})
}
