package dra

import (
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apicel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	devicecel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// validateSelectors validates CEL selectors. Stored ones are not compiled again.
func validateSelectors(c *rule.Check, selectors []resourcev1.DeviceSelector, stored bool) {
	if tooMany(c, len(selectors), resourcev1.DeviceSelectorsMaxSize, true) {
		return
	}
	for i, s := range selectors {
		at := c.At(i, "cel")
		switch {
		case s.CEL == nil:
			at.Required("")
		case !stored:
			validateExpression(at.At("expression"), s.CEL.Expression, devicecel.Options{}, resourcev1.CELSelectorExpressionMaxCost)
		}
	}
}

// validateExpression compiles an expression and limits its estimated cost. It returns the cost.
func validateExpression(c *rule.Check, expression string, options devicecel.Options, limit uint64) uint64 {
	if len(expression) > resourcev1.CELSelectorExpressionMaxLength {
		c.TooLong(resourcev1.CELSelectorExpressionMaxLength)
		return 0
	}
	env := environment.NewExpressions
	options.EnvType = &env
	result := devicecel.GetCompiler(devicecel.Features{
		EnableConsumableCapacity: c.Gates.On(gate.DRAConsumableCapacity),
		EnableListTypeAttributes: c.Gates.On(gate.DRAListTypeAttributes),
	}).CompileCELExpression(expression, options)
	if result.Error != nil {
		c.Add(fieldError(c, expression, result.Error))
		return 0
	}
	if result.MaxCost > limit {
		c.Forbidden("too complex, exceeds cost limit")
	}
	return result.MaxCost
}

func fieldError(c *rule.Check, expression string, wrong *apicel.Error) *field.Error {
	switch wrong.Type {
	case apicel.ErrorTypeRequired:
		return field.Required(c.Path(), wrong.Detail)
	case apicel.ErrorTypeInvalid:
		return field.Invalid(c.Path(), expression, wrong.Detail)
	default:
		return field.InternalError(c.Path(), wrong)
	}
}

// validateRaw checks that raw data is a JSON object.
func validateRaw(c *rule.Check, data []byte, max int) {
	var v any
	if len(data) == 0 {
		c.Required("")
		return
	}
	if len(data) > max {
		c.TooLong(max)
		return
	}
	if err := json.Unmarshal(data, &v); err != nil {
		c.Invalid("<value omitted>", fmt.Sprintf("error parsing data as JSON: %v", err))
		return
	}
	if _, ok := v.(map[string]any); v == nil {
		c.Required("")
	} else if !ok {
		c.Invalid("<value omitted>", "must be a valid JSON object")
	}
}
