package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
)

// resourcesOnly returns the part of a spec that decides the QoS class.
func resourcesOnly(spec map[string]any) map[string]any {
	out := map[string]any{}
	if r := spec["resources"]; r != nil {
		out["resources"] = r
	}
	for _, list := range []string{"containers", "initContainers"} {
		var containers []any
		for _, c := range kind.List(spec, list) {
			container := map[string]any{}
			for _, name := range []string{"resources", "restartPolicy"} {
				if v := asTree(c)[name]; v != nil {
					container[name] = v
				}
			}
			containers = append(containers, container)
		}
		out[list] = containers
	}
	return out
}

// QOS returns the QoS class of a pod: from its status, otherwise computed from its spec.
func QOS(gates *gate.Set, pod map[string]any) corev1.PodQOSClass {
	if class := kind.Text(pod, "status", "qosClass"); class != "" {
		return corev1.PodQOSClass(class)
	}
	return qosOf(gates, kind.ValueOf[corev1.PodSpec](resourcesOnly(kind.Tree(pod, "spec"))))
}

// qosOf computes the QoS class of a spec: that of all its containers if they agree, otherwise
// Burstable.
func qosOf(gates *gate.Set, spec *corev1.PodSpec) corev1.PodQOSClass {
	whole := gates.On(gate.PodLevelResources)
	if whole && (hasPodResources(spec.Resources) || spec.Resources != nil && !gates.On(gate.PodLevelResourcesFixKubeletQOSClass)) {
		return qosOfResources(spec.Resources)
	}
	class := corev1.PodQOSClass("")
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			class = sameClass(class, qosOfResources(&list[i].Resources))
		}
	}
	if class == "" {
		return corev1.PodQOSBestEffort
	}
	return class
}

func qosOfResources(r *corev1.ResourceRequirements) (class corev1.PodQOSClass) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		switch {
		case !request.Equal(limit):
			class = corev1.PodQOSBurstable
		case request.IsZero():
			class = sameClass(class, corev1.PodQOSBestEffort)
		default:
			class = sameClass(class, corev1.PodQOSGuaranteed)
		}
	}
	return class
}

func sameClass(a, b corev1.PodQOSClass) corev1.PodQOSClass {
	if a == "" || a == b {
		return b
	}
	return corev1.PodQOSBurstable
}

// hasPodResources reports whether the pod has supported resources of its own.
func hasPodResources(r *corev1.ResourceRequirements) bool {
	if r == nil {
		return false
	}
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for name := range list {
			if isPodResource(name) {
				return true
			}
		}
	}
	return false
}

func isPodResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || kind.IsHugePages(name)
}
