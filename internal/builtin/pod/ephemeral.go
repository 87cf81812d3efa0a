package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

// revertToEphemeralContainers keeps everything but the ephemeral containers.
func revertToEphemeralContainers(pod, old map[string]any) {
	containers := kind.Value(pod, "spec", "ephemeralContainers")
	kind.Put(pod, "spec", old["spec"])
	kind.Put(pod, "status", old["status"])
	keepMetadata(pod, old)
	kind.Put(kind.Child(pod, "spec"), "ephemeralContainers", containers)
}

// validateEphemeralContainers checks that containers are only added. A patch may have
// changed their order.
func validateEphemeralContainers(pod, old map[string]any) (errs field.ErrorList) {
	if isStatic(old) {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	at := field.NewPath("spec", "ephemeralContainers")
	now := map[string]map[string]any{}
	for _, c := range kind.List(pod, "spec", "ephemeralContainers") {
		c, _ := c.(map[string]any)
		now[kind.Text(c, "name")] = c
	}
	for _, c := range kind.List(old, "spec", "ephemeralContainers") {
		was, _ := c.(map[string]any)
		name := kind.Text(was, "name")
		is, there := now[name]
		switch {
		case !there:
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", name)))
		case !object.Equal(was, is):
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("existing ephemeral containers %q may not be changed\n", name)))
		}
	}
	return errs
}

// isStatic reports whether a pod mirrors one that a kubelet has from elsewhere.
func isStatic(pod map[string]any) bool {
	_, mirror := kind.Tree(pod, "metadata", "annotations")[corev1.MirrorPodAnnotationKey]
	return mirror
}
