package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
)

// completeResources sets missing resources of a pod from those of its containers, if the pod has
// any. Without the gate PodLevelResourcesFixDefaulting, it adds requests only to a pod with limits, and no limits but
// those of huge pages.
func completeResources(gates *gate.Set, tree map[string]any) {
	of := kind.Tree(tree, "resources")
	if len(kind.Tree(of, "requests"))+len(kind.Tree(of, "limits")) == 0 || !gates.On(gate.PodLevelResources) {
		return
	}
	spec := kind.ValueOf[corev1.PodSpec](resourcesOnly(tree))
	requests, limits := Requests(spec), Limits(spec)
	whole := spec.Resources
	add := func(field string, list *corev1.ResourceList, name corev1.ResourceName, from corev1.ResourceList) {
		quantity, ok := from[name]
		if _, present := (*list)[name]; present || !ok || !isPodResource(name) {
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = quantity
		kind.Child(of, field)[string(name)] = quantity.String()
	}
	for name := range limits {
		if _, requested := whole.Requests[name]; kind.IsHugePages(name) && !requested {
			add("limits", &whole.Limits, name, limits)
		}
	}
	fixed := gates.On(gate.PodLevelResourcesFixDefaulting)
	if !fixed && len(whole.Limits) == 0 {
		return
	}
	for name := range requests {
		if !kind.IsHugePages(name) {
			add("requests", &whole.Requests, name, requests)
		}
	}
	for name := range whole.Limits {
		add("requests", &whole.Requests, name, whole.Limits)
	}
	// Ephemeral containers have no limits.
	if !fixed || len(kind.List(tree, "ephemeralContainers")) > 0 {
		return
	}
	for name, request := range whole.Requests {
		if limit, ok := limits[name]; ok && limitsAll(spec, name) {
			if request.Cmp(limit) > 0 {
				limits[name] = request
			}
			add("limits", &whole.Limits, name, limits)
		}
	}
}

// limitsAll reports whether all containers limit a resource.
func limitsAll(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for c := range containersOf(spec) {
		if _, ok := c.Resources.Limits[name]; !ok {
			return false
		}
	}
	return true
}

// Requests returns the requests of a pod: the maximum over its init phase and its main phase.
func Requests(spec *corev1.PodSpec) corev1.ResourceList {
	return aggregate(spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests })
}

// Limits returns the limits of a pod in the same way.
func Limits(spec *corev1.PodSpec) corev1.ResourceList {
	return aggregate(spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
}

func aggregate(spec *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	sum, sidecars, before := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		increase(sum, of(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if isSidecar(c) {
			increase(sum, of(c))
			increase(sidecars, of(c))
			raise(before, sidecars)
			continue
		}
		// An init container runs beside the sidecars before it.
		while := corev1.ResourceList{}
		increase(while, of(c))
		increase(while, sidecars)
		raise(before, while)
	}
	raise(sum, before)
	return sum
}

// increase adds amounts to a list.
func increase(list, by corev1.ResourceList) {
	for name, quantity := range by {
		now := list[name].DeepCopy()
		now.Add(quantity)
		list[name] = now
	}
}

// raise sets each amount of a list to the maximum of both.
func raise(list, to corev1.ResourceList) {
	for name, quantity := range to {
		if now, ok := list[name]; !ok || quantity.Cmp(now) > 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}
