// Package pod has the built-in kind Pod with its subresources, and the Binding.
//
// It knows what a pod may be and what requests make of it: a deletion gives it time to
// end, a binding gives it a node, an eviction asks its budget. It starts no container; to
// those of a node it speaks through the kubelet (internal/kubelet).
package pod

import (
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/kubelet"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// Others are what requests for pods are about besides pods, and ways to pods.
type Others struct {
	// Budgets are PodDisruptionBudgets. Evictions are what a client sends to evict a pod.
	Budgets, Evictions *resource.Definition
	Nodes              *resource.Definition
	Kubelets           *kubelet.Client
	Network            http.RoundTripper
}

// Definitions returns pods and bindings.
func Definitions(o Others) []*resource.Definition {
	b := &binder{}
	bound := bindingKind(b)
	b.pods = pods(b, bound, o)
	return []*resource.Definition{b.pods, bound}
}

var (
	readAndChange = []string{"get", "patch", "update"}
	createOnly    = []string{"create"}
)

func pods(b *binder, bound *resource.Definition, o Others) *resource.Definition {
	evict := &evictor{budgets: o.Budgets}
	node := &connecter{nodes: o.Nodes, kubelets: o.Kubelets}
	page := &visit{network: o.Network}
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
			talking("attach", "PodAttachOptions", talk{node, attachPath}, kind.Options[corev1.PodAttachOptions]),
			{Name: "binding", Verbs: createOnly, Kind: schema.GroupVersionKind{Kind: "Binding"}, Definition: bound, Creater: b},
			{
				Name: "ephemeralcontainers", Verbs: readAndChange, Fields: []string{"spec.ephemeralContainers"},
				Revert: resource.Changing(revertToEphemeralContainers), Validate: resource.Looking(validateEphemeralContainers), Warn: silent,
			},
			{
				Name: "eviction", Verbs: createOnly, Definition: o.Evictions, Creater: evict,
				Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"),
			},
			talking("exec", "PodExecOptions", talk{node, execPath}, kind.Options[corev1.PodExecOptions]),
			{
				Name: "log", Verbs: []string{"get"}, Connecter: logReader{node}, Reads: true,
				Options: kind.Options[corev1.PodLogOptions](corev1.SchemeGroupVersion.WithKind("PodLogOptions")),
			},
			talking("portforward", "PodPortForwardOptions", talk{node, forwardPath}, kind.Options[corev1.PodPortForwardOptions]),
			{
				Name: "proxy", Verbs: []string{"create", "delete", "get", "patch", "update"}, Kind: schema.GroupVersionKind{Kind: "PodProxyOptions"},
				Connecter: page, PathsBelow: true, Options: kind.Options[corev1.PodProxyOptions](corev1.SchemeGroupVersion.WithKind("PodProxyOptions")),
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
	evict.pods, node.pods, page.pods = d, d, d
	return d
}

// talking is a subresource by which a client talks to a container.
func talking(name, options string, t talk, read func(schema.GroupVersionKind) func(url.Values) (runtime.Object, error)) resource.Subresource {
	return resource.Subresource{
		Name: name, Verbs: []string{"create", "get"}, Kind: schema.GroupVersionKind{Kind: options},
		Connecter: t, Options: read(corev1.SchemeGroupVersion.WithKind(options)),
	}
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
