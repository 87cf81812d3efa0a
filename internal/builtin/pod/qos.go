package pod

import (
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/internal/builtin/kind"
)

// qosOf is the class of a pod by what its containers ask for, or by what the pod asks for
// as a whole.
func qosOf(pod map[string]any) corev1.PodQOSClass {
	if whole := kind.Tree(pod, "spec", "resources"); asksForPod(whole) {
		return qosOfResources(whole)
	}
	class := corev1.PodQOSClass("")
	for _, list := range containerLists {
		for _, c := range kind.List(pod, "spec", list) {
			c, _ := c.(map[string]any)
			switch of := qosOfResources(kind.Tree(c, "resources")); class {
			case "", of:
				class = of
			default:
				return corev1.PodQOSBurstable
			}
		}
	}
	if class == "" {
		return corev1.PodQOSBestEffort
	}
	return class
}

// asksForPod reports whether resources are of those that a whole pod can ask for.
func asksForPod(resources map[string]any) bool {
	for _, of := range []string{"requests", "limits"} {
		for name := range kind.Tree(resources, of) {
			if isPodResource(corev1.ResourceName(name)) {
				return true
			}
		}
	}
	return false
}

// qosOfResources is the class by cpu and memory: nothing is asked for, or as much as is
// allowed, or anything else.
func qosOfResources(resources map[string]any) corev1.PodQOSClass {
	classes := map[corev1.PodQOSClass]bool{}
	for _, name := range []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory)} {
		request, limit := quantity(resources, "requests", name), quantity(resources, "limits", name)
		switch {
		case request.Cmp(limit) != 0:
			return corev1.PodQOSBurstable
		case request.IsZero():
			classes[corev1.PodQOSBestEffort] = true
		default:
			classes[corev1.PodQOSGuaranteed] = true
		}
	}
	switch {
	case len(classes) > 1:
		return corev1.PodQOSBurstable
	case classes[corev1.PodQOSGuaranteed]:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBestEffort
	}
}

// quantity is how much of a resource is asked for. What is none is refused elsewhere.
func quantity(resources map[string]any, of, name string) apiresource.Quantity {
	q, _ := apiresource.ParseQuantity(kind.Text(resources, of, name))
	return q
}
