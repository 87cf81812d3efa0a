package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// ValidateResources finds what is wrong with the resources of a container that is in no pod,
// at which c looks.
func ValidateResources(c *rule.Check, r *corev1.ResourceRequirements) {
	checkResources(c, r, kind.ValidateContainerResource, &podContext{})
}
