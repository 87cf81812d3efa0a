package rule

import (
	"reflect"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// share validates a number of pods or a percentage.
func share(c *Check, v reflect.Value, _ rule) bool {
	s, ok := v.Interface().(*intstr.IntOrString)
	if !ok || s == nil {
		return true
	}
	before := len(c.Errors())
	if s.Type == intstr.Int {
		c.Add(apivalidation.ValidateNonnegativeField(int64(s.IntVal), c.Path())...)
	} else {
		c.Invalids(*s, validation.IsValidPercent(s.StrVal))
	}
	return len(c.Errors()) == before
}

// atMostAll rejects more than 100%.
func atMostAll(c *Check, v reflect.Value, _ rule) bool {
	s, ok := v.Interface().(*intstr.IntOrString)
	if !ok || s == nil {
		return true
	}
	if n, percent := Share(s); percent && n > 100 {
		c.Invalid(*s, "must not be greater than 100%")
		return false
	}
	return true
}

// Share returns a number of pods or a percentage, and 0 if it is neither.
func Share(s *intstr.IntOrString) (n int, percent bool) {
	switch {
	case s == nil:
		return 0, false
	case s.Type == intstr.String && len(validation.IsValidPercent(s.StrVal)) == 0:
		n, _ = strconv.Atoi(strings.TrimSuffix(s.StrVal, "%"))
		return n, true
	}
	return s.IntValue(), false
}
