package pod

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// containerRules are the rules and defaults of all that is in containers. They find in the
// podContext what they have to know of the rest of the spec, such as its volumes and its
// operating system.
//
// An ephemeral container has the fields of a Container in an EphemeralContainerCommon,
// which Go converts: the rules of both are the same functions.
var containerRules = rule.All()

// checkContainerLists finds what is wrong with the containers of a spec, at which c looks,
// beside each other: with their names and with the ports that they have of the host. The
// walk finds what is wrong with each.
func checkContainerLists(c *rule.Check, spec *corev1.PodSpec) {
	if len(spec.Containers) == 0 {
		c.At("containers").Required("")
	}
}

// containersOf returns all containers of a spec, in the order in which they start. The
// ephemeral ones are there as others are.
func containersOf(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// isSidecar reports whether an init container runs as long as the pod does.
func isSidecar(x *corev1.Container) bool {
	return x.RestartPolicy != nil && *x.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// restartsOnResize reports whether a container restarts when what it may use changes.
func restartsOnResize(x *corev1.Container) bool {
	for _, p := range x.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			return true
		}
	}
	return false
}
