package autoscaling

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

func horizontalPodAutoscalers() *resource.Definition {
	return kind.Kind[*autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscalerList]{
		Definition: resource.Definition{
			Group: autoscalingv2.GroupName, Plural: "horizontalpodautoscalers", ShortNames: []string{"hpa"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true, GenerationGate: gate.HPAGeneration,
			CheckOnRead: true, // one that was written in v1 lacks the defaults of spec.behavior
			Strategy:    resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Version:     &resource.Version{Name: "v2"},
		StatusKeeps: "spec",
		Default:     defaultNew,
		Validate:    validateAutoscaler, ValidateStatus: validateAutoscalerStatus,
		Columns: `
			Reference  string  reference                    .spec.scaleTargetRef
			Targets    string  targets                      .spec.metrics
			MinPods    string  least                        .spec.minReplicas
			MaxPods    string  .spec.maxReplicas
			Replicas   string  .status.currentReplicas
			Age
		`,
		Cells: kind.Cells{"reference": reference, "targets": targets, "least": least},
	}.New(
		kind.Shaped[*autoscalingv1.HorizontalPodAutoscaler, *autoscalingv1.HorizontalPodAutoscalerList]("v1", toNew, toOld).WhenDecoded(defaultOld),
	)
}

// defaultOld normalizes an autoscaler in v1 by a conversion to v2 and back, which rewrites the
// annotations.
func defaultOld(obj map[string]any) {
	kind.SetMissing(kind.Child(obj, "spec"), "minReplicas", int64(1))
	toNew(obj)
	toOld(obj)
}

// defaultNew sets the defaults of an autoscaler in v2.
func defaultNew(obj map[string]any) {
	dropSaid(obj)
	spec := kind.Child(obj, "spec")
	kind.SetMissing(spec, "minReplicas", int64(1))
	if len(kind.List(spec, "metrics")) == 0 {
		spec["metrics"] = []any{map[string]any{"type": "Resource", "resource": map[string]any{
			"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": int64(defaultUtilization)},
		}}}
	}
	behavior := kind.Tree(spec, "behavior")
	if behavior == nil {
		return
	}
	policy := func(of string, value int64) map[string]any {
		return map[string]any{"type": of, "value": value, "periodSeconds": int64(15)}
	}
	up, down := kind.Child(behavior, "scaleUp"), kind.Child(behavior, "scaleDown")
	kind.SetMissing(up, "stabilizationWindowSeconds", int64(0))
	kind.SetMissing(up, "policies", []any{policy("Pods", 4), policy("Percent", 100)})
	kind.SetMissing(down, "policies", []any{policy("Percent", 100)})
	kind.SetMissing(up, "selectPolicy", string(autoscalingv2.MaxChangePolicySelect))
	kind.SetMissing(down, "selectPolicy", string(autoscalingv2.MaxChangePolicySelect))
}

// least returns the cell with minReplicas.
func least(obj map[string]any) any {
	if n := kind.Value(obj, "spec", "minReplicas"); n != nil {
		return fmt.Sprint(n)
	}
	return "<unset>"
}
