package autoscaling

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// metricTypes are the types of metrics, sorted.
var metricTypes = []autoscalingv2.MetricSourceType{
	autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
	autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
}

// validateMetric validates a metric. It may have one source, that of its type. Of several sources
// it validates the first, too.
func validateMetric(c *rule.Check, m *autoscalingv2.MetricSpec, version versionRule) {
	if m.Type == "" {
		c.At("type").Required("must specify a metric source type")
	}
	wanted, known := sources[m.Type]
	if !known {
		rule.NotSupported(c.At("type"), m.Type, metricTypes...)
		rule.NotSupported(c.At("type"), m.Type, metricTypes...) // kube-apiserver reports it twice
	}
	var there []string
	for _, s := range []struct {
		field    string
		there    bool
		validate func(*rule.Check)
	}{
		{"object", m.Object != nil, func(c *rule.Check) { validateObject(c, m.Object, version) }},
		{"external", m.External != nil, func(c *rule.Check) { validateExternal(c, m.External) }},
		{"pods", m.Pods != nil, func(c *rule.Check) { validatePods(c, m.Pods) }},
		{"resource", m.Resource != nil, func(c *rule.Check) { validateResource(c, m.Resource) }},
		{"containerResource", m.ContainerResource != nil, func(c *rule.Check) { validateContainerResource(c, m.ContainerResource) }},
	} {
		if !s.there {
			continue
		}
		if there = append(there, s.field); len(there) == 1 {
			s.validate(c.At(s.field))
		}
	}
	if known && !slices.Contains(there, wanted) {
		c.At(wanted).Required("must populate information for the given metric source")
	}
	if len(there) < 2 {
		return
	}
	for _, field := range there {
		if field != wanted {
			c.At(field).Forbidden("must populate the given metric source only")
		}
	}
}

func validateObject(c *rule.Check, m *autoscalingv2.ObjectMetricSource, version versionRule) {
	validateReference(c.At("describedObject"), &m.DescribedObject, version)
	validateSegment(c.At("metric", "name"), m.Metric.Name, "must specify a metric name")
	validateTarget(c.At("target"), &m.Target)
	if m.Target.Value == nil && m.Target.AverageValue == nil {
		c.At("target", "averageValue").Required("must set either a target value or averageValue")
	}
}

func validateExternal(c *rule.Check, m *autoscalingv2.ExternalMetricSource) {
	validateSegment(c.At("metric", "name"), m.Metric.Name, "must specify a metric name")
	validateTarget(c.At("target"), &m.Target)
	switch total, average := m.Target.Value != nil, m.Target.AverageValue != nil; {
	case !total && !average:
		c.At("target", "averageValue").Required("must set either a target value for metric or a per-pod target")
	case total && average:
		c.At("target", "value").Forbidden("may not set both a target value for metric and a per-pod target")
	}
}

func validatePods(c *rule.Check, m *autoscalingv2.PodsMetricSource) {
	validateSegment(c.At("metric", "name"), m.Metric.Name, "must specify a metric name")
	validateTarget(c.At("target"), &m.Target)
	if m.Target.AverageValue == nil {
		c.At("target", "averageValue").Required("must specify a positive target averageValue")
	}
}

func validateResource(c *rule.Check, m *autoscalingv2.ResourceMetricSource) {
	if m.Name == "" {
		c.At("name").Required("must specify a resource name")
	}
	validateTarget(c.At("target"), &m.Target)
	validateAverage(c.At("target"), &m.Target)
}

func validateContainerResource(c *rule.Check, m *autoscalingv2.ContainerResourceMetricSource) {
	if m.Name == "" {
		c.At("name").Required("must specify a resource name")
	} else {
		kind.ValidateContainerResource(c.At("name"), m.Name)
	}
	if m.Container == "" {
		c.At("container").Required("must specify a container")
	} else {
		c.At("container").Invalids(m.Container, validation.IsDNS1123Label(m.Container))
	}
	validateTarget(c.At("target"), &m.Target)
	validateAverage(c.At("target"), &m.Target)
}

func validateAverage(c *rule.Check, t *autoscalingv2.MetricTarget) {
	switch utilization, value := t.AverageUtilization != nil, t.AverageValue != nil; {
	case !utilization && !value:
		c.At("averageUtilization").Required("must set either a target raw value or a target utilization")
	case utilization && value:
		c.At("averageValue").Forbidden("may not set both a target raw value and a target utilization")
	}
}

func validateTarget(c *rule.Check, t *autoscalingv2.MetricTarget) {
	if t.Type == "" {
		c.At("type").Required("must specify a metric target type")
	}
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		c.At("type").Invalid(t.Type, "must be either Utilization, Value, or AverageValue")
	}
	if v := t.Value; v != nil && v.Sign() != 1 {
		c.At("value").Invalid(v, "must be positive")
	}
	if v := t.AverageValue; v != nil && v.Sign() != 1 {
		c.At("averageValue").Invalid(v, "must be positive")
	}
	if n := t.AverageUtilization; n != nil && *n < 1 {
		c.At("averageUtilization").Invalid(n, "must be greater than 0")
	}
}
