package pod

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// PrepareTemplate removes former annotations from a template. The template may be nil.
func PrepareTemplate(template map[string]any) { dropAnnotations(kind.Tree(template, "metadata")) }

// prepare sets the fields of a pod that the server decides.
func prepare(ctx context.Context, c *resource.Change) {
	pod, old := c.Object, c.Old
	spec, oldSpec := kind.Child(pod, "spec"), kind.Tree(old, "spec")
	fixed := c.Gates.On(gate.PodLevelResourcesFixDefaulting)
	if old != nil && spec["resources"] == nil && fixed {
		// Clients that do not know the field omit it.
		kind.Put(spec, "resources", oldSpec["resources"])
	}
	// Without the gate, each write completes the pod, except a write of its status.
	if old == nil || c.Subresource == "resize" || c.Subresource == "" && !fixed {
		completeResources(c.Gates, spec)
	}
	dropAnnotations(kind.Tree(pod, "metadata"))
	if old != nil {
		return
	}
	if len(kind.List(spec, "schedulingGates")) > 0 {
		setCondition(pod, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		})
	}
	mergeLabelKeys(c.Gates, spec, kind.Tree(pod, "metadata", "labels"))
	copyAppArmor(ctx, pod)
	kind.Child(pod, "status")["qosClass"] = string(qosOf(c.Gates, kind.ValueOf[corev1.PodSpec](resourcesOnly(spec))))
}

// mergesSpread reports whether matchLabelKeys of constraints are merged into selectors.
func mergesSpread(gates *gate.Set) bool {
	return gates.On(gate.MatchLabelKeysInPodTopologySpread) && gates.On(gate.MatchLabelKeysInPodTopologySpreadSelectorMerge)
}

// mergeLabelKeys merges matchLabelKeys and mismatchLabelKeys into selectors, with the labels of the
// pod.
func mergeLabelKeys(gates *gate.Set, spec, labels map[string]any) {
	if mergesSpread(gates) {
		for _, c := range kind.List(spec, "topologySpreadConstraints") {
			selectByKeys(asTree(c), "matchLabelKeys", metav1.LabelSelectorOpIn, labels)
		}
	}
	both := func(term map[string]any) {
		selectByKeys(term, "matchLabelKeys", metav1.LabelSelectorOpIn, labels)
		selectByKeys(term, "mismatchLabelKeys", metav1.LabelSelectorOpNotIn, labels)
	}
	for _, which := range []string{"podAffinity", "podAntiAffinity"} {
		affinity := kind.Tree(spec, "affinity", which)
		for _, t := range kind.List(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
			both(kind.Tree(asTree(t), "podAffinityTerm"))
		}
		for _, t := range kind.List(affinity, "requiredDuringSchedulingIgnoredDuringExecution") {
			both(asTree(t))
		}
	}
}

// selectByKeys adds requirements for the pod's labels with some keys to the selector of a term. A
// term without a selector matches no pod.
func selectByKeys(term map[string]any, keys string, operator metav1.LabelSelectorOperator, labels map[string]any) {
	selector := kind.Tree(term, "labelSelector")
	if selector == nil {
		return
	}
	for _, key := range kind.Texts(term, keys) {
		value, ok := labels[key].(string)
		if !ok {
			continue
		}
		selector["matchExpressions"] = append(slices.Clip(kind.List(selector, "matchExpressions")), map[string]any{
			"key": key, "operator": string(operator), "values": []any{value},
		})
	}
}

// revertStatus reverts the status. A new pod is Pending.
func revertStatus(pod, old map[string]any) {
	if old == nil {
		pod["status"] = map[string]any{"phase": string(corev1.PodPending)}
		return
	}
	kind.Put(pod, "status", old["status"])
}
