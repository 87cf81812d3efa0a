package autoscaling

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

const (
	oldVersion = "autoscaling/v1"
	newVersion = "autoscaling/v2"
)

func horizontalPodAutoscalers() *resource.Definition {
	stored := &resource.Version{Name: "v2", Storage: true}
	v2 := kind.Kind[autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscalerList]{
		Definition: resource.Definition{
			Group: autoscalingv2.GroupName, Plural: "horizontalpodautoscalers", ShortNames: []string{"hpa"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			Convert:  convert,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Validate: inNew(validateAutoscaler)},
		},
		Version:     stored,
		StatusKeeps: "spec",
		Default:     defaultNew,
		Columns: `
			Reference  string  reference                    .spec.scaleTargetRef
			Targets    string  targets                      .spec.metrics
			MinPods    string  least                        .spec.minReplicas
			MaxPods    string  .spec.maxReplicas
			Replicas   string  .status.currentReplicas
			Age
		`,
		Cells: kind.Cells{"reference": reference, "targets": targets, "least": least},
	}
	v2.AnyFinalizers = true // which validateAutoscaler looks at
	served := &resource.Version{Name: "v1"}
	v1 := kind.Kind[autoscalingv1.HorizontalPodAutoscaler, autoscalingv1.HorizontalPodAutoscalerList]{
		Version: served, StatusKeeps: "spec", Default: defaultOld,
	}.AsVersion()
	d := v2.New(v1)
	for _, v := range d.Versions {
		status := v.Subresource("status")
		status.Validate = inNew(validateAutoscalerStatus)
	}
	status := served.Subresource("status")
	served.Revert, status.Revert = revertOld(stored.Revert), revertOld(stored.Subresource("status").Revert)
	for _, c := range stored.Columns {
		cell := c.Cell
		c.Cell = func(obj map[string]any) any { return cell(asNew(obj)) }
		served.Columns = append(served.Columns, c)
	}
	return d
}

var rules = rule.Lazy()

// revertOld makes of what reverts parts of an autoscaler in v2 what does so in v1, where
// annotations have some of them.
func revertOld(revert func(context.Context, *resource.Change)) func(context.Context, *resource.Change) {
	return func(ctx context.Context, c *resource.Change) {
		now := *c
		now.Old = asNew(c.Old)
		toNew(c.Object)
		revert(ctx, &now)
		toOld(c.Object)
	}
}

// convert brings autoscalers into a version.
func convert(_ context.Context, objs []map[string]any, version string) ([]map[string]any, error) {
	for _, obj := range objs {
		switch to := autoscalingv2.GroupName + "/" + version; {
		case to == object.APIVersion(obj):
		case to == newVersion:
			toNew(obj)
		default:
			toOld(obj)
		}
	}
	return objs, nil
}

// asNew returns an autoscaler in v2, and leaves obj as it is.
func asNew(obj map[string]any) map[string]any {
	if obj == nil || object.APIVersion(obj) == newVersion {
		return obj
	}
	obj = object.CloneTree(obj)
	toNew(obj)
	return obj
}

// defaultOld makes of an autoscaler in v1 what becomes of it once it was in v2: what the
// annotations say is said again, in order.
func defaultOld(obj map[string]any) {
	kind.SetMissing(kind.Child(obj, "spec"), "minReplicas", int64(1))
	toNew(obj)
	toOld(obj)
}

// defaultNew fills in what an autoscaler in v2 does where it says nothing.
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

// least is how many pods there are at least, as a text.
func least(obj map[string]any) any {
	if n := kind.Value(obj, "spec", "minReplicas"); n != nil {
		return fmt.Sprint(n)
	}
	return "<unset>"
}
