package structural

import (
	"math"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// numbers are the constraints for numbers. They are compared with integers as integers and with floats
// as floats, independent of the type in the schema.
type numbers struct {
	typed, format          string
	minimum, maximum       *float64
	aboveMinimum           bool // not the minimum itself
	belowMaximum           bool
	multipleOf             *float64
	badMinimum, badMaximum bool // is itself no number of the type
	badMultiple            bool
}

// plainInteger are the constraints for a place of type integer without further ones.
var plainInteger = &numbers{typed: typeInteger}

func (n *numbers) bounded() bool { return n.minimum != nil || n.maximum != nil || n.multipleOf != nil }

// newNumbers returns nil without constraints for numbers.
func newNumbers(typed, format string, props *apiextensionsv1.JSONSchemaProps) *numbers {
	n := &numbers{
		minimum: props.Minimum, aboveMinimum: props.ExclusiveMinimum,
		maximum: props.Maximum, belowMaximum: props.ExclusiveMaximum,
		multipleOf: props.MultipleOf,
	}
	if typed == typeInteger || typed == typeNumber {
		n.typed = typed
	}
	if n.typed == typeInteger && (format == "int32" || format == "int64") || n.typed == typeNumber && (format == "float" || format == "double") {
		n.format = format
	}
	bad := func(bound *float64) bool { return bound != nil && !n.floatInRange(*bound) }
	n.badMinimum, n.badMaximum, n.badMultiple = bad(n.minimum), bad(n.maximum), bad(n.multipleOf)
	if !n.bounded() && n.typed != typeInteger && n.format != "float" {
		return nil
	}
	return n
}

// numberFaults are the ways in which a number can be wrong.
type numberFaults uint8

const (
	outOfRange numberFaults = 1 << iota
	badMultipleBound
	notMultiple
	multipleNotPositive
	badMinimumBound
	tooSmall
	badMaximumBound
	tooBig
)

// ofInt and ofFloat return the errors of a number.

func (n *numbers) ofInt(v int64) (faults numberFaults) {
	if n.format == "int32" && int64(int32(v)) != v {
		faults |= outOfRange
	}
	if m := n.multipleOf; m != nil {
		if n.badMultiple {
			faults |= badMultipleBound | floatMultiple(float64(v), *m)
		} else if by := int64(*m); by <= 0 {
			faults |= multipleNotPositive
		} else if v%by != 0 {
			faults |= notMultiple
		}
	}
	if m := n.minimum; m != nil {
		if n.badMinimum {
			faults |= badMinimumBound | floatMinimum(float64(v), *m, n.aboveMinimum)
		} else if least := int64(*m); v < least || n.aboveMinimum && v == least {
			faults |= tooSmall
		}
	}
	if m := n.maximum; m != nil {
		if n.badMaximum {
			faults |= badMaximumBound | floatMaximum(float64(v), *m, n.belowMaximum)
		} else if most := int64(*m); v > most || n.belowMaximum && v == most {
			faults |= tooBig
		}
	}
	return faults
}

func (n *numbers) ofFloat(v float64) (faults numberFaults) {
	if !n.floatInRange(v) {
		faults |= outOfRange
	}
	for _, b := range []struct {
		bad   bool
		fault numberFaults
	}{{n.badMultiple, badMultipleBound}, {n.badMinimum, badMinimumBound}, {n.badMaximum, badMaximumBound}} {
		if b.bad {
			faults |= b.fault
		}
	}
	if m := n.multipleOf; m != nil {
		faults |= floatMultiple(v, *m)
	}
	if m := n.minimum; m != nil {
		faults |= floatMinimum(v, *m, n.aboveMinimum)
	}
	if m := n.maximum; m != nil {
		faults |= floatMaximum(v, *m, n.belowMaximum)
	}
	return faults
}

func floatMultiple(v, by float64) numberFaults {
	if by <= 0 {
		return multipleNotPositive
	}
	times := v / by
	if by < 1 {
		times = 1 / by * v
	}
	if !whole(times) {
		return notMultiple
	}
	return 0
}

func floatMinimum(v, least float64, above bool) numberFaults {
	if v < least || above && v == least {
		return tooSmall
	}
	return 0
}

func floatMaximum(v, most float64, below bool) numberFaults {
	if v > most || below && v == most {
		return tooBig
	}
	return 0
}

// floatInRange reports whether v is a number of the type and format.
func (n *numbers) floatInRange(v float64) bool {
	switch {
	case n.typed == typeInteger:
		if math.Abs(v) < 1<<31-1 {
			return v == math.Trunc(v)
		}
		bits := 64
		if n.format == "int32" {
			bits = 32
		}
		// The shortest decimal form decides.
		_, err := strconv.ParseInt(strconv.FormatFloat(v, 'f', -1, 64), 10, bits)
		return err == nil
	case n.format == "float" && math.Abs(v) >= math.MaxFloat32:
		_, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', -1, 64), 32)
		return err == nil
	}
	return true
}

// whole reports whether f counts as an integer: one that JSON can represent, up to the rounding error
// of a division.
func whole(f float64) bool {
	const most = 1<<53 - 1
	if !(math.Abs(f) <= most) {
		return false
	}
	nearest := math.Round(f)
	return f == nearest || nearest != 0 && math.Abs(f-nearest) < 1e-9*math.Abs(nearest)
}
