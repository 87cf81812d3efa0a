package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podresource "k8s.io/component-helpers/resource"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// checkAllocatable validates the resources of the node that the claims of a pod take. The rules of the types
// ignore unchanged values.
func checkAllocatable(c *rule.Check, pod *corev1.Pod, old []corev1.NodeAllocatableResourceClaimStatus) {
	all := pod.Status.NodeAllocatableResourceClaimStatuses
	changed := !equality.Semantic.DeepEqual(all, old)
	for i := range all {
		s, at := &all[i], c.At(i)
		named := func(o corev1.NodeAllocatableResourceClaimStatus) bool {
			return o.ResourceClaimName == s.ResourceClaimName
		}
		if changed && slices.ContainsFunc(all[:i], named) {
			at.Add(field.Duplicate(at.Path(), *s))
		}
		if was := slices.IndexFunc(old, named); was < 0 || !equality.Semantic.DeepEqual(*s, old[was]) {
			checkAllocatableRules(c, s, i)
		}
		if s.ResourceClaimName == "" {
			continue
		}
		if !hasClaim(pod, s.ResourceClaimName) {
			at.At("resourceClaimName").Invalid(s.ResourceClaimName, "no mapping found in pod reference")
		}
		for j, m := range s.Mapping {
			at := at.At("mapping", j)
			checkAllocatableName(at, m.Name)
			checkNotNegative(at.At("quantity"), m.Quantity)
		}
		for j, o := range s.Overhead {
			at := at.At("overhead", j)
			checkAllocatableName(at, o.Name)
			if o.PerPod == nil && o.PerContainer == nil {
				at.Invalid("", "at least one of perPod or perContainer must be set")
			}
			checkNotNegative(at.At("perPod"), o.PerPod)
			checkNotNegative(at.At("perContainer"), o.PerContainer)
		}
	}
}

func checkAllocatableRules(c *rule.Check, s *corev1.NodeAllocatableResourceClaimStatus, i int) {
	c.Walk(s, i)
	for j, m := range s.Mapping {
		if m.Quantity == nil {
			c.At(i, "mapping", j, "quantity").Required("")
		}
	}
}

// hasClaim reports whether a pod uses a claim, by name or by a template.
func hasClaim(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(r corev1.PodResourceClaim) bool {
		return r.ResourceClaimName != nil && *r.ResourceClaimName == name
	}) || slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool {
		return s.ResourceClaimName != nil && *s.ResourceClaimName == name
	})
}

func checkAllocatableName(c *rule.Check, name corev1.ResourceName) {
	if !kind.IsNodeAllocatable(name) {
		c.At("name").Invalid(name, "must be a node allocatable resource name")
	}
}

func checkNotNegative(c *rule.Check, q *resource.Quantity) {
	if q != nil && q.Sign() < 0 {
		c.Invalid(q.String(), "must be non-negative")
	}
}

// checkCovers validates that the resources of a pod cover the requests of its containers and its node-allocatable claims.
func checkCovers(c *rule.Check, pod *corev1.Pod) {
	if pod.Spec.Resources == nil {
		return
	}
	problem := func(format string, args ...any) {
		c.Invalid(pod.Spec.Resources, fmt.Sprintf("pod level "+format, args...))
	}
	o := podresource.PodResourcesOptions{SkipPodLevelResources: true, UseDRANodeAllocatableResourceClaimStatus: true}
	requests := podresource.AggregateContainerRequests(pod, o)
	for _, name := range kind.SortedKeys(pod.Spec.Resources.Requests) {
		if taken, ok := requests[name]; ok && podresource.IsSupportedPodLevelResource(name) && taken.Cmp(pod.Spec.Resources.Requests[name]) > 0 {
			problem("request for %s is insufficient to cover the aggregated container and node-allocatable DRA requests", name)
			return
		}
	}
	most := pod.Spec.Resources.Limits
	limits := podresource.AggregateContainerLimits(pod, o)
	for _, name := range kind.SortedKeys(limits) {
		if limit, ok := most[name]; ok && kind.IsHugePages(name) && limit.Cmp(limits[name]) < 0 {
			problem("limit for %s is insufficient to cover the aggregated container and node-allocatable DRA limits", name)
			return
		}
	}
	for i := range pod.Spec.Containers {
		x := &pod.Spec.Containers[i]
		taken := podresource.GetContainerDRAAllocations(pod, x.Name)
		for _, name := range kind.SortedKeys(x.Resources.Limits) {
			sum := x.Resources.Limits[name].DeepCopy()
			sum.Add(taken[name])
			if limit, ok := most[name]; ok && !kind.IsHugePages(name) && sum.Cmp(limit) > 0 {
				problem("limit for %s is insufficient to cover the limit and DRA overhead for container %s", name, x.Name)
				return
			}
		}
	}
}
