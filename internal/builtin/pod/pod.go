// Package pod has the built-in kind Pod with its subresources, and the Binding.
//
// It knows what a pod may be and what requests make of it: a deletion gives it time to
// end, a binding gives it a node, an eviction asks its budget. It starts no container; to
// those of a node it speaks through the kubelet (internal/kubelet).
package pod

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// Kinds are those that requests for pods are about, besides pods.
type Kinds struct {
	// Budgets are PodDisruptionBudgets.
	Budgets *resource.Definition
	// Evictions are what a client sends to evict a pod.
	Evictions *resource.Definition
}

// Definitions returns pods and bindings.
func Definitions(k Kinds) []*resource.Definition {
	bindings := &binder{}
	bound := bindingKind(bindings)
	pods := pods(bindings, bound, k)
	bindings.pods = pods
	return []*resource.Definition{pods, bound}
}

var (
	readAndChange = []string{"get", "patch", "update"}
	createOnly    = []string{"create"}
)

func pods(b *binder, bound *resource.Definition, k Kinds) *resource.Definition {
	evict := &evictor{budgets: k.Budgets}
	d := kind.New(resource.Definition{
		Plural: "pods", Singular: "pod", Kind: "Pod", ShortNames: []string{"po"}, Categories: []string{"all"},
		Namespaced: true, GroupPriority: kind.CorePriority, HasGeneration: true, ReturnsDeleted: true,
		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			GracePeriod:              gracePeriod,
		},
	}, kind.VersionOf[corev1.Pod, corev1.PodList](&resource.Version{
		Name:        "v1",
		Revert:      resource.Changing(revert),
		ResetFields: []string{"status"},
		Subresources: []resource.Subresource{
			{Name: "binding", Verbs: createOnly, Kind: schema.GroupVersionKind{Kind: "Binding"}, Definition: bound, Creater: b},
			{
				Name: "ephemeralcontainers", Verbs: readAndChange, Fields: []string{"spec.ephemeralContainers"},
				Revert: resource.Changing(revertToEphemeralContainers), Validate: resource.Looking(validateEphemeralContainers), Warn: silent,
			},
			{
				Name: "eviction", Verbs: createOnly, Definition: k.Evictions, Creater: evict,
				Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"),
			},
			{
				Name: "resize", Verbs: readAndChange, Fields: resizable,
				Revert: resource.Changing(revertToResize), Validate: resource.Looking(validateResize), Warn: silent,
			},
			{
				Name: "status", Verbs: readAndChange, Fields: []string{
					"metadata.annotations", "metadata.deletionGracePeriodSeconds", "metadata.finalizers", "metadata.generateName", "metadata.labels", "status",
				},
				Revert: resource.Changing(revertToStatus), Validate: resource.Looking(validateStatus), Warn: resource.Looking(warnStatus),
			},
		},
		SelectableFields: selectable(),
		Columns:          []resource.Column{kind.AgeColumn()},
	}, nil))
	evict.pods = d
	return d
}

// selectable are the fields that a field selector knows.
func selectable() map[string]func(map[string]any) string {
	fields := map[string]func(map[string]any) string{
		"spec.hostNetwork": func(pod map[string]any) string {
			if kind.Value(pod, "spec", "hostNetwork") == true {
				return "true"
			}
			return "false"
		},
		"status.podIP": func(pod map[string]any) string {
			if ips := kind.List(pod, "status", "podIPs"); len(ips) > 0 {
				first, _ := ips[0].(map[string]any)
				return kind.Text(first, "ip")
			}
			return ""
		},
	}
	for in, names := range map[string][]string{
		"spec":   {"nodeName", "restartPolicy", "schedulerName", "serviceAccountName"},
		"status": {"phase", "nominatedNodeName"},
	} {
		for _, name := range names {
			fields[in+"."+name] = func(pod map[string]any) string { return kind.Text(pod, in, name) }
		}
	}
	return fields
}

// revert leaves the status to its subresource. A new pod is pending; if something keeps it
// from being scheduled, it says so.
func revert(pod, old map[string]any) {
	if old != nil {
		kind.Put(pod, "status", old["status"])
		return
	}
	pod["status"] = map[string]any{"phase": string(corev1.PodPending), "qosClass": string(qosOf(pod))}
	if len(kind.List(pod, "spec", "schedulingGates")) > 0 {
		setCondition(pod, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		})
	}
}

// gracePeriod is what the client asks for, or what the pod says. A pod that is nowhere, or
// that has ended, needs no time.
func gracePeriod(pod map[string]any, asked *int64) int64 {
	phase := corev1.PodPhase(kind.Text(pod, "status", "phase"))
	switch seconds, _ := kind.Value(pod, "spec", "terminationGracePeriodSeconds").(int64); {
	case kind.Text(pod, "spec", "nodeName") == "", phase == corev1.PodFailed, phase == corev1.PodSucceeded:
		return 0
	case asked != nil:
		return *asked
	default:
		return seconds
	}
}

// keepMetadata keeps what a write through a subresource leaves alone of the metadata.
func keepMetadata(pod, old map[string]any) {
	now, was := object.Metadata(pod), object.Metadata(old)
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		kind.Put(now, name, was[name])
	}
}
