package pod

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
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
	d := kind.Kind[corev1.Pod, corev1.PodList]{
		Definition: resource.Definition{
			Plural: "pods", ShortNames: []string{"po"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, GracePeriod: gracePeriod, Prepare: prepare},
		},
		Version: &resource.Version{
			Revert: resource.Changing(revert), ResetFields: []string{"status"}, RowConditions: rowConditions,
			Subresources: []resource.Subresource{
				{Name: "binding", Verbs: createOnly, Kind: schema.GroupVersionKind{Kind: "Binding"}, Definition: bound, Creater: b},
				{
					Name: "ephemeralcontainers", Verbs: readAndChange, Fields: []string{"spec.ephemeralContainers"},
					Revert: resource.Changing(revertToEphemeralContainers), Validate: validating(validateEphemeralContainers), Warn: silent,
				},
				{
					Name: "eviction", Verbs: createOnly, Definition: k.Evictions, Creater: evict,
					Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"),
				},
				{
					Name: "resize", Verbs: readAndChange, Fields: resizable,
					Revert: resource.Changing(revertToResize), Validate: validating(validateResize), Warn: silent,
				},
				{
					Name: "status", Verbs: readAndChange, Fields: []string{
						"metadata.annotations", "metadata.deletionGracePeriodSeconds", "metadata.finalizers", "metadata.generateName", "metadata.labels", "status",
					},
					Revert: resource.Changing(revertToStatus), Validate: validating(validateStatus), Warn: resource.Looking(warnStatus),
				},
			},
		},
		Rules:    podRules,
		Validate: validate,
		Warn:     warn,
		Columns:  podColumns,
		Cells:    podCells,
		Select: `
			spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork
			status.phase status.podIP status.nominatedNodeName
		`,
	}.New()
	evict.pods = d
	return d
}

// podRules are the rules of pods. Those of the types inside are the same in a template.
var podRules = rule.Lazy(Rules, rule.Default[corev1.Pod](defaultPod), rule.Default[corev1.PodStatus](defaultStatus))

// validating makes a hook that validates what is written through a subresource.
func validating(validate func(c *rule.Check, pod, old *corev1.Pod)) func(context.Context, *resource.Change) field.ErrorList {
	return kind.Typed(podRules, func(c *rule.Check, pod, old *corev1.Pod) {
		c.Add(kind.MetaFinalizers(c.Object)...)
		validate(c, pod, old)
	})
}

// revert leaves the status to its subresource. A new pod is pending.
func revert(pod, old map[string]any) {
	if old == nil {
		pod["status"] = map[string]any{"phase": string(corev1.PodPending)}
		return
	}
	kind.Put(pod, "status", old["status"])
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
