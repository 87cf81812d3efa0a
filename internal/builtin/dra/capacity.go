package dra

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// validateCapacity validates the request policy of a capacity, which a shared device can have.
func validateCapacity(c *rule.Check, capacity *resourcev1.DeviceCapacity, shared bool) {
	policy := capacity.RequestPolicy
	if policy == nil {
		return
	}
	c = c.At("requestPolicy")
	switch {
	case !shared:
		c.Forbidden("allowMultipleAllocations must be true")
	case len(policy.ValidValues) > 0 && policy.ValidRange != nil:
		c.Forbidden(`exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)
	case len(policy.ValidValues) > 0:
		if policy.Default == nil {
			c.At("default").Required("required when validValues is defined")
			return
		}
		validateValues(c.At("validValues"), policy.ValidValues, *policy.Default, capacity.Value)
	case policy.ValidRange != nil:
		if policy.Default == nil {
			c.At("default").Required("required when validRange is defined")
			return
		}
		validateRange(c.At("validRange"), policy.ValidRange, *policy.Default, capacity.Value)
	}
}

// maxOptions limits the valid values of a policy.
const maxOptions = 10

func validateValues(c *rule.Check, values []resource.Quantity, preset, capacity resource.Quantity) {
	for i := range values {
		if i > 0 && values[i-1].Cmp(values[i]) > 0 {
			c.At(i).Invalid(values[i].String(), "values must be sorted in ascending order")
		}
	}
	if !tooMany(c, len(values), maxOptions, false) {
		var keys []string
		for i, v := range values {
			if v.Cmp(capacity) > 0 {
				c.At(i).Invalid(v.String(), "option is larger than capacity value: "+capacity.String())
			}
			keys = append(keys, keyOf(c, v))
		}
		unique(c, false, keys...)
		if slices.ContainsFunc(values, func(v resource.Quantity) bool { return v.Cmp(preset) == 0 }) {
			return
		}
	}
	c.Invalid(preset.String(), "default value is not valid according to the requestPolicy")
}

// keyOf returns a text that is equal for equal quantities.
func keyOf(c *rule.Check, q resource.Quantity) string {
	if c.Gates.On(gate.DRAFractionalCapacityRange) {
		return q.AsDec().String()
	}
	return strconv.FormatInt(q.Value(), 10)
}

// isFractional reports whether a quantity is no integer.
func isFractional(q resource.Quantity) bool {
	d := q.AsDec()
	if d.Scale() <= 0 {
		return false
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Scale())), nil)
	return unit.Rem(d.UnscaledBig(), unit).Sign() != 0
}

func validateRange(c *rule.Check, r *resourcev1.CapacityRequestPolicyRange, preset, capacity resource.Quantity) {
	least, most := c.At("min"), c.At("max")
	if r.Min == nil {
		least.Required("required when validRange is defined")
		return
	}
	if r.Min.Cmp(capacity) > 0 {
		least.Invalid(r.Min.String(), "min is larger than capacity value: "+capacity.String())
	}
	if preset.Cmp(*r.Min) < 0 {
		c.At("default").Invalid(preset.String(), "default is less than min: "+r.Min.String())
	}
	if r.Max != nil {
		if r.Min.Cmp(*r.Max) > 0 {
			most.Invalid(r.Min.String(), "min is larger than max: "+r.Max.String())
		}
		if r.Max.Cmp(capacity) > 0 {
			most.Invalid(r.Max.String(), "max is larger than capacity value: "+capacity.String())
		}
		if preset.Cmp(*r.Max) > 0 {
			c.At("default").Invalid(preset.String(), "default is more than max: "+r.Max.String())
		}
	}
	all := quantities{{"default", &preset}, {"min", r.Min}, {"max", r.Max}, {"step", r.Step}}
	fractional := c.Gates.On(gate.DRAFractionalCapacityRange) && all.any(func(_ string, q *resource.Quantity) bool { return isFractional(*q) })
	if fractional && all.any(func(name string, q *resource.Quantity) bool { return !isMilli(c.At(name), q) }) {
		return
	}
	if r.Step != nil {
		validateStep(c, r, preset, capacity, all, fractional)
	}
}

// quantities are the quantities of a range by field name. They can be nil.
type quantities []struct {
	name  string
	value *resource.Quantity
}

// any calls a function for all quantities, and reports whether it returns true for one.
func (all quantities) any(is func(name string, q *resource.Quantity) bool) (found bool) {
	for _, of := range all {
		found = of.value != nil && is(of.name, of.value) || found
	}
	return found
}

// isMilli reports whether a quantity has at most three decimal places. It adds an error if not.
func isMilli(c *rule.Check, q *resource.Quantity) bool {
	if q.Cmp(*resource.NewMilliQuantity(q.MilliValue(), q.Format)) != 0 {
		c.Invalid(q.String(), "value cannot be represented as a milli value")
		return false
	}
	return true
}

// isCount reports whether a quantity is in the range of int64 and not negative. It adds an error if not.
func isCount(c *rule.Check, q *resource.Quantity) bool {
	switch {
	case q.Sign() < 0:
		c.Invalid(q.String(), apivalidation.IsNegativeErrorMsg)
	case q.CmpInt64(math.MaxInt64) > 0:
		c.Invalid(q.String(), fmt.Sprintf("must not be larger than %d", math.MaxInt64))
	default:
		return true
	}
	return false
}

// validateStep checks that values of a range are a multiple of the step above its minimum.
func validateStep(c *rule.Check, r *resourcev1.CapacityRequestPolicyRange, preset, capacity resource.Quantity, all quantities, fractional bool) {
	at := c.At("step")
	if r.Step.Sign() <= 0 {
		at.Invalid(r.Step.String(), "must be greater than zero")
		return
	}
	next := r.Min.DeepCopy()
	next.Add(*r.Step)
	if next.Cmp(capacity) > 0 {
		at.Invalid(r.Step.String(), fmt.Sprintf("one step %s is larger than capacity value: %s", next.String(), capacity.String()))
	}
	number := (*resource.Quantity).MilliValue
	if !fractional {
		if all.any(func(name string, q *resource.Quantity) bool { return !isCount(c.At(name), q) }) {
			return
		}
		number = (*resource.Quantity).Value
	}
	for _, v := range []*resource.Quantity{&preset, r.Max} {
		if v != nil && (number(v)-number(r.Min))%number(r.Step) != 0 {
			at.Invalid(v.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", r.Step.String(), r.Min.String()))
		}
	}
}
