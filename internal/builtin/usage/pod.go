package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	podresource "k8s.io/component-helpers/resource"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
)

// computed are the resource names of pods, except those with a prefix.
var computed = map[corev1.ResourceName]bool{
	corev1.ResourcePods:                     true,
	corev1.ResourceCPU:                      true,
	corev1.ResourceMemory:                   true,
	corev1.ResourceEphemeralStorage:         true,
	corev1.ResourceRequestsCPU:              true,
	corev1.ResourceRequestsMemory:           true,
	corev1.ResourceRequestsEphemeralStorage: true,
	corev1.ResourceLimitsCPU:                true,
	corev1.ResourceLimitsMemory:             true,
	corev1.ResourceLimitsEphemeralStorage:   true,
}

// required are the resources that every container must set if they are limited.
var required = map[corev1.ResourceName]bool{
	corev1.ResourceCPU: true, corev1.ResourceRequestsCPU: true, corev1.ResourceLimitsCPU: true,
	corev1.ResourceMemory: true, corev1.ResourceRequestsMemory: true, corev1.ResourceLimitsMemory: true,
}

const (
	requests = corev1.DefaultResourceRequestsPrefix
	// ofClass begins the implicit extended resource of a device class.
	ofClass = resourcev1.ResourceDeviceClassPrefix
)

// isExtendedRequest reports whether a quota limits devices by this name.
func isExtendedRequest(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), requests) && (!kind.IsNative(name) || strings.HasPrefix(string(name), requests+ofClass))
}

type podEvaluator struct {
	now   func() time.Time
	gates *gate.Set
}

func (podEvaluator) Limits(name corev1.ResourceName) bool {
	return computed[name] || isCount(name, pods) || isExtendedRequest(name) ||
		kind.IsHugePages(name) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// Updates is true for resizes, and for updates that change the scopes of a pod.
func (podEvaluator) Updates(subresource string, now, was object.Tree) bool {
	switch subresource {
	case "":
		return hasDeadline(now) != hasDeadline(was)
	case "resize":
		return true
	}
	return false
}

// hasDeadline is isTerminating for a tree.
func hasDeadline(pod object.Tree) bool {
	spec, _ := pod["spec"].(object.Tree)
	seconds, ok := spec["activeDeadlineSeconds"].(int64)
	return ok && seconds >= 0
}

func (e podEvaluator) Read(_ context.Context, decode func(any) error) (Object, error) {
	p := &pod{now: e.now}
	err := decode(&p.Pod)
	if !e.gates.On(gate.PodLevelResources) {
		p.Spec.Resources = nil
	}
	return p, err
}

// A pod is a measured Pod.
type pod struct {
	corev1.Pod
	now func() time.Time
}

func (p *pod) Usage() corev1.ResourceList {
	list := corev1.ResourceList{CountName(pods): one}
	if p.ended() {
		return list
	}
	list[corev1.ResourcePods] = one
	o := podresource.PodResourcesOptions{UseStatusResources: true}
	maps.Copy(list, named(podresource.PodRequests(&p.Pod, o), podresource.PodLimits(&p.Pod, o)))
	return list
}

// ended reports whether the pod no longer counts: it has terminated, or its grace period is over.
func (p *pod) ended() bool {
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return true
	}
	if p.DeletionTimestamp == nil || p.DeletionGracePeriodSeconds == nil {
		return false
	}
	grace := time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
	return p.now().After(p.DeletionTimestamp.Add(grace))
}

// named returns requests and limits under the names of quotas.
func named(asked, most corev1.ResourceList) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range asked {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, kind.IsHugePages(name):
			list[name], list[requests+name] = amount, amount
		case kind.IsExtended(name), strings.HasPrefix(string(name), ofClass):
			list[requests+name] = amount
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if amount, ok := most[name]; ok {
			list["limits."+name] = amount
		}
	}
	return list
}

func (p *pod) InScope(s corev1.ScopedResourceSelectorRequirement) (bool, error) {
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return p.isTerminating(), nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return !p.isTerminating(), nil
	case corev1.ResourceQuotaScopeBestEffort:
		return p.isBestEffort(), nil
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !p.isBestEffort(), nil
	case corev1.ResourceQuotaScopePriorityClass:
		return selects(s, present(p.Spec.PriorityClassName)...)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return p.looksIntoNamespaces(), nil
	}
	return false, nil
}

// isTerminating reports whether the pod has an active deadline.
func (p *pod) isTerminating() bool {
	return p.Spec.ActiveDeadlineSeconds != nil && *p.Spec.ActiveDeadlineSeconds >= 0
}

// isBestEffort reports whether the pod has no requests or limits for cpu and memory.
func (p *pod) isBestEffort() bool {
	if p.Status.QOSClass != "" {
		return p.Status.QOSClass == corev1.PodQOSBestEffort
	}
	none := func(r *corev1.ResourceRequirements) bool {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			if !request.IsZero() || !limit.IsZero() {
				return false
			}
		}
		return true
	}
	if podresource.IsPodLevelResourcesSet(&p.Pod) {
		return none(p.Spec.Resources)
	}
	asks := func(c corev1.Container) bool { return !none(&c.Resources) }
	return !slices.ContainsFunc(p.Spec.Containers, asks) && !slices.ContainsFunc(p.Spec.InitContainers, asks)
}

// looksIntoNamespaces reports whether the affinity of the pod refers to other namespaces.
func (p *pod) looksIntoNamespaces() bool {
	a := p.Spec.Affinity
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if to := a.PodAffinity; to != nil {
		terms = append(terms, to.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, to.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if from := a.PodAntiAffinity; from != nil {
		terms = append(terms, from.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, from.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for i := range weighted {
		terms = append(terms, weighted[i].PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

// Lacks is about cpu and memory. Every container must set them, unless the pod does.
func (p *pod) Lacks(limited []corev1.ResourceName) error {
	if podresource.IsPodLevelResourcesSet(&p.Pod) {
		return nil
	}
	var missing []string
	for _, name := range slices.Sorted(slices.Values(limited)) {
		if !required[name] {
			continue
		}
		silent := map[string]bool{}
		for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
			for i := range list {
				if _, ok := named(list[i].Resources.Requests, list[i].Resources.Limits)[name]; !ok {
					silent[list[i].Name] = true
				}
			}
		}
		if len(silent) > 0 {
			missing = append(missing, fmt.Sprintf("%s for: %s", name, strings.Join(kind.SortedKeys(silent), ",")))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("must specify %s", strings.Join(missing, "; "))
}
