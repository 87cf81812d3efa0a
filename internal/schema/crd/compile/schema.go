package compile

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/celrule"
)

// versionSchema is the schema of one version of a custom resource, with its rules and the constraints
// of its /scale.
type versionSchema struct {
	*schema.Schema
	rules *celrule.Rules
	scale *scaled // nil where there is no /scale
}

// unsafe are the errors after which rules are skipped: the cost of an object beyond the types and
// sizes of the schema is unlimited.
var unsafe = []field.ErrorType{
	field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
}

// Validate returns the errors of obj, except those of rules.
func (s versionSchema) Validate(ctx context.Context, obj, old map[string]any) field.ErrorList {
	errs := append(s.ValidateValues(obj, old), s.scale.validateSpec(obj)...)
	errs = append(errs, s.scale.validateStatus(obj)...)
	return append(errs, s.ValidateParts(ctx, obj, old)...)
}

// ValidateStatus is Validate for a write of the status alone.
func (s versionSchema) ValidateStatus(_ context.Context, obj, old map[string]any) field.ErrorList {
	errs := append(s.ValidateStatusValues(obj, old), s.scale.validateStatus(obj)...)
	return append(errs, s.ValidateLists(obj, old)...)
}

// ValidateRules returns the rules that obj breaks, or the reason for which they were skipped because
// of found errors.
func (s versionSchema) ValidateRules(ctx context.Context, obj, old map[string]any, found field.ErrorList) field.ErrorList {
	if slices.ContainsFunc(found, func(err *field.Error) bool { return slices.Contains(unsafe, err.Type) }) {
		if !s.rules.Any() {
			return nil
		}
		return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
	}
	return s.rules.Validate(ctx, obj, old, celrule.Options{
		Update: true,
		Warn:   func(message string) { resource.Warn(ctx, message) },
	})
}

// DropIdle drops compiled schemas and rules that were not used since the last call.
func (s versionSchema) DropIdle() {
	s.Schema.DropIdle()
	s.rules.DropIdle()
}
