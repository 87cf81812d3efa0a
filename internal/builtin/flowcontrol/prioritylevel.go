package flowcontrol

import (
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// zeroSharesKey is an annotation of an old version, now forbidden.
const zeroSharesKey = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"

// mostQueues limits the queues of a level.
const mostQueues = 10_000_000

func validateLevel(c *rule.Check, l, _ *flowcontrolv1.PriorityLevelConfiguration) {
	if _, ok := l.Annotations[zeroSharesKey]; ok {
		c.At("metadata", "annotations").Forbidden(fmt.Sprintf("annotation '%s' is forbidden", zeroSharesKey))
	}
	validateLevelSpec(c.At("spec"), l)
	if fixed, ok := fixedLevels[l.Name]; ok {
		validateFixed(c.At("spec"), l, fixed)
	}
	validateLevelStatus(c, l, nil)
}

// validateFixed validates a mandatory level. Only a part of exempt can change.
func validateFixed(c *rule.Check, l *flowcontrolv1.PriorityLevelConfiguration, fixed flowcontrolv1.PriorityLevelConfigurationSpec) {
	detail := "spec of '%s' must equal the fixed value"
	if l.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt {
		fixed.Exempt = l.Spec.Exempt
		detail = "spec of '%s' except the 'spec.exempt' field must equal the fixed value"
	}
	if !equality.Semantic.DeepEqual(l.Spec, fixed) {
		c.Invalid(l.Spec, fmt.Sprintf(detail, l.Name))
	}
}

func validateLevelSpec(c *rule.Check, l *flowcontrolv1.PriorityLevelConfiguration) {
	spec := &l.Spec
	walked := *spec
	if !rule.Tagged(c.Gates) && spec.Type != flowcontrolv1.PriorityLevelEnablementLimited {
		walked.Limited = nil // handwritten validation ignores a field of another type
	}
	c.Walk(&walked)
	if (l.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt) != (spec.Type == flowcontrolv1.PriorityLevelEnablementExempt) {
		c.At("type").Invalid(spec.Type, "must be 'Exempt' if and only if `name` is 'exempt'")
	}
	forbid(c.At("limited"), spec.Limited != nil, spec.Type, flowcontrolv1.PriorityLevelEnablementLimited,
		flowcontrolv1.PriorityLevelEnablementExempt, "must be nil if the type is not Limited")
	forbid(c.At("exempt"), spec.Exempt != nil, spec.Type, flowcontrolv1.PriorityLevelEnablementExempt,
		flowcontrolv1.PriorityLevelEnablementLimited, "must be nil if the type is Limited")
	switch spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if e := spec.Exempt; e != nil {
			atLeastZero(c.At("exempt", "nominalConcurrencyShares"), e.NominalConcurrencyShares, "must be a non-negative integer")
			percent(c.At("exempt", "lendablePercent"), e.LendablePercent)
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if spec.Limited == nil {
			c.At("limited").Required(rule.Untagged(c.Gates, "must not be empty when type is Limited"))
			return
		}
		validateLimited(c.At("limited"), spec.Limited)
	case "":
	default:
		rule.NotSupported(c.At("type"), spec.Type, flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)
	}
}

func atLeastZero(c *rule.Check, n *int32, detail string) {
	if n != nil && *n < 0 {
		c.Invalid(*n, detail)
	}
}

func percent(c *rule.Check, n *int32) {
	if n != nil && (*n < 0 || *n > 100) {
		c.Invalid(*n, "must be between 0 and 100, inclusive")
	}
}

func validateLimitResponse(c *rule.Check, r *flowcontrolv1.LimitResponse) {
	forbid(c.At("queuing"), r.Queuing != nil, r.Type, flowcontrolv1.LimitResponseTypeQueue,
		flowcontrolv1.LimitResponseTypeReject, "must be nil if limited.limitResponse.type is not Limited")
}

// forbid adds an error for a field that is set although the type is not its own. Tags forbid the field for every type but own.
// Handwritten validation forbids it for other only, with a detail.
func forbid[T ~string](c *rule.Check, isSet bool, typ, own, other T, detail string) {
	if isSet && (typ == other || typ != own && rule.Tagged(c.Gates)) {
		c.Forbidden(rule.Untagged(c.Gates, detail))
	}
}

func validateLimited(c *rule.Check, l *flowcontrolv1.LimitedPriorityLevelConfiguration) {
	atLeastZero(c.At("nominalConcurrencyShares"), l.NominalConcurrencyShares, "must be a non-negative integer")
	percent(c.At("lendablePercent"), l.LendablePercent)
	atLeastZero(c.At("borrowingLimitPercent"), l.BorrowingLimitPercent, "if specified, must be a non-negative integer")
	c = c.At("limitResponse")
	switch queuing := l.LimitResponse.Queuing; l.LimitResponse.Type {
	case flowcontrolv1.LimitResponseTypeReject, "":
	case flowcontrolv1.LimitResponseTypeQueue:
		if queuing == nil {
			c.At("queuing").Required(rule.Untagged(c.Gates, "must not be empty if limited.limitResponse.type is Limited"))
			return
		}
		validateQueuing(c.At("queuing"), queuing)
	default:
		rule.NotSupported(c.At("type"), l.LimitResponse.Type, flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)
	}
}

func validateQueuing(c *rule.Check, q *flowcontrolv1.QueuingConfiguration) {
	if q.QueueLengthLimit <= 0 {
		c.At("queueLengthLimit").Invalid(q.QueueLengthLimit, "must be positive")
	}
	switch {
	case q.Queues <= 0:
		c.At("queues").Invalid(q.Queues, "must be positive")
	case q.Queues > mostQueues:
		c.At("queues").Invalid(q.Queues, fmt.Sprintf("must not be greater than %d", mostQueues))
	}
	at := c.At("handSize")
	bits := bitsOf(q.Queues, q.HandSize)
	switch {
	case q.HandSize <= 0:
		at.Invalid(q.HandSize, "must be positive")
	case q.HandSize > q.Queues:
		at.Invalid(q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues))
	case bits > mostBits:
		at.Invalid(q.HandSize, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, mostBits))
	}
}

func validateLevelStatus(c *rule.Check, l, _ *flowcontrolv1.PriorityLevelConfiguration) {
	c.Walk(&l.Status, "status")
	validateTypesOnce(c, l.Status.Conditions, func(d flowcontrolv1.PriorityLevelConfigurationCondition) flowcontrolv1.PriorityLevelConfigurationConditionType {
		return d.Type
	})
}
