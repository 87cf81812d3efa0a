package autoscaling

import (
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// validateLeast validates the least number of replicas. Zero is a feature.
func validateLeast(c *rule.Check, least *int32, old *autoscalingv2.HorizontalPodAutoscaler) {
	bound := int32(1)
	if c.Gates.On(gate.HPAScaleToZero) || old != nil && old.Spec.MinReplicas != nil && *old.Spec.MinReplicas == 0 {
		bound = 0
	}
	if least != nil && *least < bound {
		c.Invalid(*least, fmt.Sprintf("must be greater than or equal to %d", bound))
	}
}

func validateAutoscaler(c *rule.Check, a, old *autoscalingv2.HorizontalPodAutoscaler) {
	spec, at := &a.Spec, c.At("spec")
	least, limit := spec.MinReplicas, at.At("maxReplicas")
	c.Fields(spec, "spec")
	validateLeast(at.At("minReplicas"), least, old)
	if least != nil && spec.MaxReplicas < *least {
		limit.Invalid(spec.MaxReplicas, "must be greater than or equal to `minReplicas`")
	}
	target, group := spec.ScaleTargetRef, needsGroup
	switch {
	case old != nil && old.Spec.ScaleTargetRef.APIVersion == target.APIVersion && old.Spec.ScaleTargetRef.Kind == target.Kind:
		group = anyVersion
	case target.Kind == "ReplicationController":
		group = knownVersion
	}
	validateReference(at.At("scaleTargetRef"), &target, group)
	group = knownVersion
	if old != nil && describesUnknown(old.Spec.Metrics) {
		group = anyVersion
	}
	elsewhere := false // an external metric allows scaling to zero
	for i := range spec.Metrics {
		m := &spec.Metrics[i]
		validateMetric(at.At("metrics", i), m, group)
		elsewhere = elsewhere || m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if least != nil && *least == 0 && !elsewhere {
		at.At("metrics").Forbidden("must specify at least one Object or External metric to support scaling to zero replicas")
	}
	if b := spec.Behavior; b != nil {
		validateScaling(at.At("behavior", "scaleUp"), b.ScaleUp)
		validateScaling(at.At("behavior", "scaleDown"), b.ScaleDown)
	}
}

func validateAutoscalerStatus(c *rule.Check, a, _ *autoscalingv2.HorizontalPodAutoscaler) {
	c.Walk(&a.Status, "status")
}

// A versionRule validates the apiVersion of a reference.
type versionRule func(apiVersion string) error

func anyVersion(string) error { return nil }

func knownVersion(apiVersion string) error {
	_, err := schema.ParseGroupVersion(apiVersion)
	return err
}

func needsGroup(apiVersion string) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err == nil && gv.Group == "" {
		err = errors.New("apiVersion must specify API group")
	}
	return err
}

// describesUnknown reports whether a metric is of an object with an invalid apiVersion.
func describesUnknown(metrics []autoscalingv2.MetricSpec) bool {
	for _, m := range metrics {
		if m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil && knownVersion(m.Object.DescribedObject.APIVersion) != nil {
			return true
		}
	}
	return false
}

func validateReference(c *rule.Check, r *autoscalingv2.CrossVersionObjectReference, version versionRule) {
	validateSegment(c.At("kind"), r.Kind, "")
	validateSegment(c.At("name"), r.Name, "")
	if err := version(r.APIVersion); err != nil {
		c.At("apiVersion").Invalid(r.APIVersion, err.Error())
	}
}

// validateSegment rejects a name that is not a valid path segment.
func validateSegment(c *rule.Check, name, missing string) {
	if name == "" {
		c.Required(missing)
		return
	}
	c.Invalids(name, content.IsPathSegmentName(name))
}

// Limits of the scaling rules, in seconds.
const (
	maxPeriod        = 1800
	maxStabilization = 3600
)

func validateScaling(c *rule.Check, r *autoscalingv2.HPAScalingRules) {
	if r == nil {
		return
	}
	if n := r.StabilizationWindowSeconds; n != nil {
		at := c.At("stabilizationWindowSeconds")
		switch {
		case *n < 0:
			at.Invalid(*n, "must be greater than or equal to zero")
		case *n > maxStabilization:
			at.Invalid(*n, fmt.Sprintf("must be less than or equal to %d", maxStabilization))
		}
	}
	switch p := r.SelectPolicy; {
	case p == nil, *p == autoscalingv2.MaxChangePolicySelect, *p == autoscalingv2.MinChangePolicySelect, *p == autoscalingv2.DisabledPolicySelect:
	default:
		rule.NotSupported(c.At("selectPolicy"), *p, autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)
	}
	if len(r.Policies) == 0 {
		c.At("policies").Required("must specify at least one Policy")
	}
	for i := range r.Policies {
		validatePolicy(c.At("policies", i), &r.Policies[i])
	}
	if t := r.Tolerance; t != nil && t.Sign() < 0 {
		c.At("tolerance").Invalid(t.String(), "must be greater than or equal to 0")
	}
}

func validatePolicy(c *rule.Check, p *autoscalingv2.HPAScalingPolicy) {
	if p.Type != autoscalingv2.PodsScalingPolicy && p.Type != autoscalingv2.PercentScalingPolicy {
		rule.NotSupported(c.At("type"), p.Type, autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)
	}
	if p.Value <= 0 {
		c.At("value").Invalid(p.Value, "must be greater than zero")
	}
	switch at := c.At("periodSeconds"); {
	case p.PeriodSeconds <= 0:
		at.Invalid(p.PeriodSeconds, "must be greater than zero")
	case p.PeriodSeconds > maxPeriod:
		at.Invalid(p.PeriodSeconds, fmt.Sprintf("must be less than or equal to %d", maxPeriod))
	}
}
