package dra

import (
	"context"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// prepareTaintRule sets timeAdded when the effect of a taint changes, unless the client does.
func prepareTaintRule(_ context.Context, c *resource.Change) {
	if c.Old == nil {
		return
	}
	taint, old := kind.Tree(c.Object, "spec", "taint"), kind.Tree(c.Old, "spec", "taint")
	if kind.Text(taint, "effect") != kind.Text(old, "effect") && kind.Text(taint, "timeAdded") == kind.Text(old, "timeAdded") {
		taint["timeAdded"] = object.Timestamp(time.Now())
	}
}

func validateTaintRule(c *rule.Check, r, old *resourcev1.DeviceTaintRule) {
	c = c.At("spec")
	var was *resourcev1.DeviceTaintRuleSpec
	effect := resourcev1.DeviceTaintEffect("")
	if old != nil {
		was, effect = &old.Spec, old.Spec.Taint.Effect
	}
	merged(c, resourcev1.Validate_DeviceTaintRuleSpec, &r.Spec, was, func(own *rule.Check) {
		own = own.At("spec")
		if s, at := r.Spec.DeviceSelector, own.At("deviceSelector"); s != nil {
			if s.Driver != nil {
				at.Add(driver(*s.Driver, at.At("driver").Path())...)
			}
			if s.Pool != nil {
				at.Add(pool(*s.Pool, at.At("pool").Path())...)
			}
			if s.Device != nil {
				at.Add(label(*s.Device, at.At("device").Path())...)
			}
		}
		validateTaint(own.At("taint"), &r.Spec.Taint, old != nil && effect == r.Spec.Taint.Effect)
	})
}

func validateTaintRuleStatus(c *rule.Check, r, old *resourcev1.DeviceTaintRule) {
	c = c.At("status")
	merged(c, resourcev1.Validate_DeviceTaintRuleStatus, &r.Status, &old.Status, func(own *rule.Check) {
		own = own.At("status", "conditions")
		own.Conditions(r.Status.Conditions)
		if n := len(r.Status.Conditions); n > resourcev1.DeviceTaintRuleStatusMaxConditions {
			own.TooMany(n, resourcev1.DeviceTaintRuleStatusMaxConditions)
		}
	})
}

// effects are sorted as in errors.
var effects = []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone}

// validateTaint validates a taint. An unchanged effect is valid.
func validateTaint(c *rule.Check, t *resourcev1.DeviceTaint, sameEffect bool) {
	c.Add(metavalidation.ValidateLabelName(t.Key, c.At("key").Path())...)
	c.Add(labelValue(t.Value, c.At("value").Path())...)
	switch at := c.At("effect").Path(); {
	case sameEffect:
	case t.Effect == "":
		c.Add(field.Required(at, "").MarkCoveredByDeclarative())
	case !slices.Contains(effects, t.Effect):
		c.Add(field.NotSupported(at, t.Effect, effects).MarkCoveredByDeclarative())
	}
}

func validateToleration(c *rule.Check, t *resourcev1.DeviceToleration) {
	if t.Key != "" {
		c.Add(metavalidation.ValidateLabelName(t.Key, c.At("key").Path()).MarkCoveredByDeclarative()...)
	}
	value, operator := c.At("value"), c.At("operator").Path()
	switch t.Operator {
	case resourcev1.DeviceTolerationOpExists:
		if t.Value != "" {
			value.Invalid(t.Value, "must be empty for operator `Exists`")
		}
	case resourcev1.DeviceTolerationOpEqual:
		c.Add(labelValue(t.Value, value.Path())...)
	case "":
		c.Add(field.Required(operator, "").MarkCoveredByDeclarative())
	default:
		known := []resourcev1.DeviceTolerationOperator{resourcev1.DeviceTolerationOpEqual, resourcev1.DeviceTolerationOpExists}
		c.Add(field.NotSupported(operator, t.Operator, known).MarkCoveredByDeclarative())
	}
	if t.Effect != "" && !slices.Contains(effects, t.Effect) {
		c.Add(field.NotSupported(c.At("effect").Path(), t.Effect, effects).MarkCoveredByDeclarative())
	}
}
