package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// validateEphemeralContainers validates new ephemeral containers of a pod.
func validateEphemeralContainers(c *rule.Check, pod, old *corev1.Pod) {
	if isStatic(old) {
		c.Add(field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers"))
		return
	}
	validateWhole(c, pod, old)
	checkAnnotationUpdate(c, pod, old)
	now := map[string]*corev1.EphemeralContainer{}
	for i := range pod.Spec.EphemeralContainers {
		now[pod.Spec.EphemeralContainers[i].Name] = &pod.Spec.EphemeralContainers[i]
	}
	at := c.At("spec", "ephemeralContainers")
	for _, was := range old.Spec.EphemeralContainers {
		switch is := now[was.Name]; {
		case is == nil:
			at.Forbidden(fmt.Sprintf("existing ephemeral containers %q may not be removed\n", was.Name))
		case !equality.Semantic.DeepEqual(was, *is):
			at.Forbidden(fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", was.Name, rule.Diff(was, *is)))
		}
	}
}

// isStatic reports whether a pod is a mirror pod.
func isStatic(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[mirrorAnnotation]
	return mirror
}
