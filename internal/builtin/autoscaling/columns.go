package autoscaling

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/anykind/anykind/internal/builtin/kind"
)

func reference(obj map[string]any) any {
	target := kind.Tree(obj, "spec", "scaleTargetRef")
	return kind.Text(target, "kind") + "/" + kind.Text(target, "name")
}

// shownTargets limits the number of metrics in the cell.
const shownTargets = 2

// targets returns the cell with current and target values of the metrics.
func targets(obj map[string]any) any {
	var out []string
	current := kind.List(obj, "status", "currentMetrics")
	metrics := kind.List(obj, "spec", "metrics")
	for i, m := range metrics {
		metric, _ := m.(map[string]any)
		var is map[string]any
		if i < len(current) {
			is, _ = current[i].(map[string]any)
		}
		out = append(out, target(metric, is))
	}
	switch more := len(out) - shownTargets; {
	case len(out) == 0:
		return "<none>"
	case more > 0:
		return fmt.Sprintf("%s + %d more...", strings.Join(out[:shownTargets], ", "), more)
	}
	return strings.Join(out, ", ")
}

// target formats one metric, whose current value may be unknown.
func target(metric, is map[string]any) string {
	of := kind.Text(metric, "type")
	field, ok := sources[autoscalingv2.MetricSourceType(of)]
	if !ok {
		return "<unknown type>"
	}
	source := kind.Tree(metric, field)
	current := kind.Tree(is, field, "current")
	wanted := kind.Tree(source, "target")
	average, averaged := wanted["averageValue"].(string)
	prefix, suffix := "", ""
	switch of {
	case string(autoscalingv2.ResourceMetricSourceType), string(autoscalingv2.ContainerResourceMetricSourceType):
		prefix = kind.Text(source, "name") + ": "
		if !averaged {
			return prefix + percent(current["averageUtilization"], "<unknown>") + "/" + percent(wanted["averageUtilization"], "<auto>")
		}
	case string(autoscalingv2.PodsMetricSourceType):
	default:
		if !averaged {
			return orUnknown(current, "value") + "/" + kind.Text(wanted, "value")
		}
		suffix = " (avg)"
	}
	return prefix + orUnknown(current, "averageValue") + "/" + average + suffix
}

// sources are the fields of the metric sources.
var sources = map[autoscalingv2.MetricSourceType]string{
	autoscalingv2.ObjectMetricSourceType: "object", autoscalingv2.PodsMetricSourceType: "pods",
	autoscalingv2.ResourceMetricSourceType: "resource", autoscalingv2.ContainerResourceMetricSourceType: "containerResource",
	autoscalingv2.ExternalMetricSourceType: "external",
}

func orUnknown(current map[string]any, field string) string {
	if s := kind.Text(current, field); s != "" {
		return s
	}
	return "<unknown>"
}

func percent(v any, unknown string) string {
	if n, ok := v.(int64); ok {
		return fmt.Sprintf("%d%%", n)
	}
	return unknown
}
