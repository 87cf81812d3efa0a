package pod

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// validateResize validates a resize of a pod.
func validateResize(c *rule.Check, pod, old *corev1.Pod) {
	switch {
	case isStatic(old):
		c.Add(field.Forbidden(field.NewPath(""), "static pods cannot be resized"))
		return
	case old.Spec.OS != nil && old.Spec.OS.Name == corev1.Windows:
		c.Add(field.Forbidden(field.NewPath(""), "windows pods cannot be resized"))
		return
	}
	if prefix := pod.GenerateName; prefix != "" {
		c.At("metadata", "generateName").Invalids(prefix, apivalidation.NameIsDNSSubdomain(prefix, true))
	}
	validateWhole(c, pod, old)
	found := len(c.Errors())
	spec := c.At("spec")
	class := old.Status.QOSClass
	if class == "" {
		class = qosOf(c.Gates, &old.Spec)
	}
	if class != qosOf(c.Gates, &pod.Spec) {
		spec.Invalid(pod.Status.QOSClass, "Pod QOS Class may not change as a result of resizing")
	}
	if !canResize(old) {
		spec.Forbidden("Pod running on node without support for resize")
	}
	rest := pod.Spec.DeepCopy()
	if !checkWhole(spec, rest, &old.Spec) {
		return
	}
	if c.Gates.On(gate.DRANodeAllocatableResources) && len(pod.Status.NodeAllocatableResourceClaimStatuses) > 0 {
		checkCovers(spec.At("resources"), pod)
	}
	if !checkSameContainers(spec, pod, old) {
		return
	}
	canResizeInit := func(x *corev1.Container) bool {
		return isSidecar(x) || c.Gates.On(gate.InPlacePodVerticalScalingInitContainers)
	}
	for i := range old.Spec.InitContainers {
		if !canResizeInit(&old.Spec.InitContainers[i]) {
			continue
		}
		checkKept(spec.At("initContainers", i, "resources"), "resource", &pod.Spec.InitContainers[i].Resources, &old.Spec.InitContainers[i].Resources)
	}
	for i := range old.Spec.Containers {
		checkKept(spec.At("containers", i, "resources"), "resource", &pod.Spec.Containers[i].Resources, &old.Spec.Containers[i].Resources)
	}
	for i := range rest.Containers {
		x, was := &rest.Containers[i], &old.Spec.Containers[i]
		if keepCPUAndMemory(&x.Resources, &was.Resources); !equality.Semantic.DeepEqual(x, was) {
			spec.Forbidden("only cpu and memory resources are mutable")
		}
	}
	for i := range rest.InitContainers {
		x, was := &rest.InitContainers[i], &old.Spec.InitContainers[i]
		switch {
		case canResizeInit(x):
			checkInitResize(spec.At("initContainers", i), x, was)
		case !equality.Semantic.DeepEqual(x, was):
			spec.Forbidden("resources for non-sidecar init containers are immutable")
		}
	}
	checkVolumeResize(spec.At("volumes"), pod.Spec.Volumes, old.Spec.Volumes)
	rest.Volumes = old.Spec.Volumes
	if len(c.Errors()) == 0 && found == 0 && !equality.Semantic.DeepEqual(*rest, old.Spec) {
		spec.Forbidden("only cpu and memory resources are mutable")
	}
}

// canResize reports whether the node of a pod supports resizes, or is unknown.
func canResize(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running != nil {
			return s.Resources != nil
		}
	}
	return true
}

// checkWhole validates a resize of pod-level resources. It then reverts the allowed changes in
// spec. It reports whether the rest of the resize is validated, too.
func checkWhole(c *rule.Check, spec, old *corev1.PodSpec) bool {
	has := func(r *corev1.ResourceRequirements) bool { return r != nil && len(r.Requests)+len(r.Limits) > 0 }
	if !has(old.Resources) && !has(spec.Resources) {
		return true
	}
	if !c.Gates.On(gate.InPlacePodLevelResourcesVerticalScaling) {
		c.Add(field.Forbidden(field.NewPath(""), "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"))
		return false
	}
	at := c.At("resources")
	if spec.Resources == nil {
		at.Forbidden("pod-level resources cannot be removed")
		return true
	}
	was := old.Resources
	if was == nil {
		was = &corev1.ResourceRequirements{}
	}
	checkKept(at, "pod-level resource", spec.Resources, was)
	keepCPUAndMemory(spec.Resources, was)
	if old.Resources == nil && !has(spec.Resources) && len(spec.Resources.Claims) == 0 {
		spec.Resources = nil
	}
	if !equality.Semantic.DeepEqual(spec.Resources, old.Resources) {
		c.Forbidden("only cpu and memory resources are mutable at pod-level")
	}
	return true
}

// checkSameContainers reports whether the containers are the old ones.
func checkSameContainers(c *rule.Check, pod, old *corev1.Pod) bool {
	same := true
	for _, list := range []struct {
		name     string
		now, was []corev1.Container
	}{
		{"containers", pod.Spec.Containers, old.Spec.Containers},
		{"initContainers", pod.Spec.InitContainers, old.Spec.InitContainers},
	} {
		if len(list.now) != len(list.was) {
			same = false
			c.At(list.name).Forbidden(list.name + " may not be added or removed on resize")
			continue
		}
		for i := range list.was {
			if list.now[i].Name != list.was[i].Name {
				same = false
				c.At(list.name, i, "name").Forbidden(list.name + " may not be renamed or reordered on resize")
			}
		}
	}
	return same
}

// checkKept rejects removed requests or limits.
func checkKept(c *rule.Check, what string, now, was *corev1.ResourceRequirements) {
	missing := func(now, was corev1.ResourceList) bool {
		for name := range was {
			if _, ok := now[name]; !ok {
				return true
			}
		}
		return false
	}
	if missing(now.Requests, was.Requests) {
		c.At("requests").Forbidden(what + " requests cannot be removed")
	}
	if missing(now.Limits, was.Limits) {
		c.At("limits").Forbidden(what + " limits cannot be removed")
	}
}

func checkInitResize(c *rule.Check, x, was *corev1.Container) {
	changed := !equality.Semantic.DeepEqual(x, was)
	if keepCPUAndMemory(&x.Resources, &was.Resources); !equality.Semantic.DeepEqual(x, was) {
		c.Forbidden("only cpu and memory resources for init or sidecar containers are mutable")
	}
	if !changed || isSidecar(x) {
		return
	}
	for _, p := range x.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			c.Forbidden("non-sidecar init containers with a resize policy of RestartContainer cannot be resized")
		}
	}
}

// keepCPUAndMemory reverts cpu and memory.
func keepCPUAndMemory(now, was *corev1.ResourceRequirements) {
	now.Requests, now.Limits = keptAmounts(now.Requests, was.Requests), keptAmounts(now.Limits, was.Limits)
}

func keptAmounts(now, was corev1.ResourceList) corev1.ResourceList {
	if now == nil && was == nil {
		return nil
	}
	out := corev1.ResourceList{}
	maps.Copy(out, now)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		delete(out, name)
		if amount, ok := was[name]; ok {
			out[name] = amount
		}
	}
	return out
}

// checkVolumeResize allows other limits of volumes in memory, with the feature gate, and no other change of
// volumes.
func checkVolumeResize(c *rule.Check, now, was []corev1.Volume) {
	if !c.Gates.On(gate.InPlacePodVerticalScalingMemoryBackedVolumes) {
		if !equality.Semantic.DeepEqual(now, was) {
			c.Forbidden("volumes are immutable on resize when InPlacePodVerticalScalingMemoryBackedVolumes feature gate is disabled")
		}
		return
	}
	if len(now) != len(was) {
		c.Forbidden("volumes may not be added or removed on resize")
		return
	}
	for i := range now {
		v, old, at := now[i].DeepCopy(), &was[i], c.At(i)
		if v.Name != old.Name {
			at.At("name").Forbidden("volumes may not be renamed or reordered on resize")
			continue
		}
		both := v.EmptyDir != nil && old.EmptyDir != nil
		if both {
			v.EmptyDir.SizeLimit = old.EmptyDir.SizeLimit
		}
		if !equality.Semantic.DeepEqual(v, old) {
			at.Forbidden("only sizeLimit of memory-backed emptyDir volumes is mutable on resize")
		} else if both {
			checkLimitResize(at.At("emptyDir", "sizeLimit"), now[i].EmptyDir, old.EmptyDir)
		}
	}
}

func checkLimitResize(c *rule.Check, now, was *corev1.EmptyDirVolumeSource) {
	limited := func(v *corev1.EmptyDirVolumeSource) bool { return v.SizeLimit != nil && !v.SizeLimit.IsZero() }
	switch {
	case limited(now) != limited(was):
		c.Forbidden("adding or removing sizeLimit on an existing volume is not allowed")
	case limited(now) && now.SizeLimit.Cmp(*was.SizeLimit) != 0 && now.Medium != corev1.StorageMediumMemory:
		c.Forbidden("sizeLimit is only mutable for memory-backed emptyDir volumes")
	}
}
