package pod

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns pods.
func Definitions() []*resource.Definition { return []*resource.Definition{pods()} }

func pods() *resource.Definition {
	return kind.Kind[corev1.Pod, corev1.PodList]{
		Definition: resource.Definition{
			Plural: "pods", ShortNames: []string{"po"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true,
				Prepare:                  prepare,
				ValidateName:             apivalidation.NameIsDNSSubdomain,
			},
		},
		Version: &resource.Version{
			ResetFields:   []string{"status"},
			Revert:        resource.Changing(revertStatus),
			RowConditions: rowConditions,
			Subresources:  changes(),
		},
		Rules:   podRules,
		Columns: podColumns,
		Cells:   podCells,
		Select: `
			spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork
			status.phase status.podIP status.nominatedNodeName
		`,
	}.New()
}

// podRules are the rules of pods. Those of the types inside are the same in a template.
var podRules = rule.Lazy(Rules, rule.Default[corev1.Pod](defaultPod), rule.Default[corev1.PodStatus](defaultStatus))

// changes are the subresources through which a part of a pod is changed.
func changes() []resource.Subresource {
	verbs := []string{"get", "patch", "update"}
	return []resource.Subresource{
		{
			Name: "ephemeralcontainers", Verbs: verbs, Fields: []string{"spec.ephemeralContainers"},
			Revert: resource.Changing(revertToEphemeralContainers),
		},
		{
			Name: "resize", Verbs: verbs, Fields: []string{"spec.containers", "spec.initContainers"},
			Revert: resource.Changing(revertToResources),
		},
		{
			Name: "status", Verbs: verbs, Fields: []string{"metadata", "status"},
			Revert: resource.Changing(revertToStatus),
		},
	}
}
