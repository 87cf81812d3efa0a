package autoscaling

import (
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin/kind"
)

// Annotations in v1 for fields that it lacks.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	currentAnnotation    = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
	downAnnotation       = "autoscaling.alpha.kubernetes.io/scale-down-tolerance"
	upAnnotation         = "autoscaling.alpha.kubernetes.io/scale-up-tolerance"
)

// defaultUtilization is the CPU target of an autoscaler without metrics.
const defaultUtilization = 80

// dropSaid removes the annotations for fields that v1 lacks.
func dropSaid(obj map[string]any) {
	annotations := kind.Tree(obj, "metadata", "annotations")
	for _, name := range []string{
		metricsAnnotation, currentAnnotation, conditionsAnnotation, behaviorAnnotation, downAnnotation, upAnnotation,
	} {
		delete(annotations, name)
	}
	if annotations != nil && len(annotations) == 0 {
		delete(kind.Tree(obj, "metadata"), "annotations")
	}
}

// replace sets the spec and the status of an object from two Go values.
func replace(obj map[string]any, spec, status any) {
	for name, value := range map[string]any{"spec": spec, "status": status} {
		if tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value); err == nil {
			obj[name] = tree
		}
	}
}

// toNew converts an autoscaler from v1 to v2. Unreadable annotations are ignored.
func toNew(obj map[string]any) {
	spec, status := &autoscalingv2.HorizontalPodAutoscalerSpec{}, &autoscalingv2.HorizontalPodAutoscalerStatus{}
	old := kind.ValueOf[autoscalingv1.HorizontalPodAutoscaler](obj)
	spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference(old.Spec.ScaleTargetRef)
	spec.MinReplicas, spec.MaxReplicas = old.Spec.MinReplicas, old.Spec.MaxReplicas
	var metrics []autoscalingv1.MetricSpec
	if decodeAnnotation(obj, metricsAnnotation, &metrics) {
		spec.Metrics = each(metrics, newMetric)
	}
	if n := old.Spec.TargetCPUUtilizationPercentage; n != nil {
		spec.Metrics = append(spec.Metrics, cpu(*n))
	}
	if len(spec.Metrics) == 0 {
		spec.Metrics = []autoscalingv2.MetricSpec{cpu(defaultUtilization)}
	}
	var b behavior
	if decodeAnnotation(obj, behaviorAnnotation, &b) && b != (behavior{}) {
		spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: b.ScaleUp.asNew(), ScaleDown: b.ScaleDown.asNew()}
	}
	status.ObservedGeneration, status.LastScaleTime = old.Status.ObservedGeneration, old.Status.LastScaleTime
	status.CurrentReplicas, status.DesiredReplicas = old.Status.CurrentReplicas, old.Status.DesiredReplicas
	var current []autoscalingv1.MetricStatus
	if decodeAnnotation(obj, currentAnnotation, &current) {
		status.CurrentMetrics = each(current, newCurrent)
	} else if n := old.Status.CurrentCPUUtilizationPercentage; n != nil {
		status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type:     autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: n}},
		}}
	}
	_ = decodeAnnotation(obj, conditionsAnnotation, &status.Conditions)
	dropSaid(obj)
	replace(obj, spec, status)
}

// decodeAnnotation decodes an annotation.
func decodeAnnotation(obj map[string]any, annotation string, into any) bool {
	text, ok := kind.Value(obj, "metadata", "annotations", annotation).(string)
	return ok && json.Unmarshal([]byte(text), into) == nil
}

// toOld converts an autoscaler from v2 to v1.
func toOld(obj map[string]any) {
	spec, status := &autoscalingv1.HorizontalPodAutoscalerSpec{}, &autoscalingv1.HorizontalPodAutoscalerStatus{}
	now := kind.ValueOf[autoscalingv2.HorizontalPodAutoscaler](obj)
	spec.ScaleTargetRef = autoscalingv1.CrossVersionObjectReference(now.Spec.ScaleTargetRef)
	spec.MinReplicas, spec.MaxReplicas = now.Spec.MinReplicas, now.Spec.MaxReplicas
	var others []autoscalingv1.MetricSpec
	for _, m := range now.Spec.Metrics {
		r := m.Resource
		if m.Type != autoscalingv2.ResourceMetricSourceType || r == nil || r.Name != corev1.ResourceCPU || r.Target.AverageUtilization == nil {
			others = append(others, oldMetric(m))
			continue
		}
		if spec.TargetCPUUtilizationPercentage == nil {
			spec.TargetCPUUtilizationPercentage = r.Target.AverageUtilization
		}
	}
	status.ObservedGeneration, status.LastScaleTime = now.Status.ObservedGeneration, now.Status.LastScaleTime
	status.CurrentReplicas, status.DesiredReplicas = now.Status.CurrentReplicas, now.Status.DesiredReplicas
	for _, m := range now.Status.CurrentMetrics {
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil && r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
	}
	dropSaid(obj)
	if len(others) > 0 {
		say(obj, metricsAnnotation, others)
	}
	if len(now.Status.CurrentMetrics) > 0 {
		say(obj, currentAnnotation, each(now.Status.CurrentMetrics, oldCurrent))
	}
	if b := now.Spec.Behavior; b != nil {
		say(obj, behaviorAnnotation, behavior{asOld(b.ScaleUp), asOld(b.ScaleDown)})
	}
	if len(now.Status.Conditions) > 0 {
		say(obj, conditionsAnnotation, each(now.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) autoscalingv1.HorizontalPodAutoscalerCondition {
			return autoscalingv1.HorizontalPodAutoscalerCondition{
				Type: autoscalingv1.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime,
				Reason: c.Reason, Message: c.Message, ObservedGeneration: c.ObservedGeneration,
			}
		}))
	}
	replace(obj, spec, status)
}

// say encodes a value into an annotation.
func say(obj map[string]any, annotation string, value any) {
	if text, err := json.Marshal(value); err == nil {
		kind.Child(kind.Child(obj, "metadata"), "annotations")[annotation] = string(text)
	}
}

func each[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i := range in {
		out[i] = f(in[i])
	}
	return out
}

// behavior has the format of the annotation: with Go field names.
type behavior struct{ ScaleUp, ScaleDown *scaling }

type scaling struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *autoscalingv2.ScalingPolicySelect
	Policies                   []policy
	Tolerance                  *quantity.Quantity
}

type policy struct {
	Type                 autoscalingv2.HPAScalingPolicyType
	Value, PeriodSeconds int32
}

func (s *scaling) asNew() *autoscalingv2.HPAScalingRules {
	if s == nil {
		return nil
	}
	out := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: s.StabilizationWindowSeconds, SelectPolicy: s.SelectPolicy, Tolerance: s.Tolerance}
	for _, p := range s.Policies {
		out.Policies = append(out.Policies, autoscalingv2.HPAScalingPolicy(p))
	}
	return out
}

func asOld(r *autoscalingv2.HPAScalingRules) *scaling {
	if r == nil {
		return nil
	}
	out := &scaling{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, policy(p))
	}
	return out
}
