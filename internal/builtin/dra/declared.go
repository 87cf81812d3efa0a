package dra

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// A declaration is a generated validation function of an API type.
type declaration[T any] func(ctx context.Context, op operation.Operation, at *field.Path, obj, old *T) field.ErrorList

// declared returns the errors of declarative validation. Unchanged values are not validated again.
func declared[T any](c *rule.Check, validations declaration[T], obj, old *T) field.ErrorList {
	op := operation.Operation{Type: operation.Create, Options: map[string]bool{
		string(gate.DRAPartitionableDevicesType): c.Gates.On(gate.DRAPartitionableDevicesType),
	}}
	if c.Subresource != "" {
		op.Request.Subresources = []string{c.Subresource}
	}
	if old != nil {
		op.Type = operation.Update
		if equality.Semantic.DeepEqual(obj, old) {
			return nil
		}
	}
	return validations(c, op, c.Path(), obj, old)
}

// merged adds the errors of find and of declarative validation to c. Duplicates keep the error of
// the type. Errors of the type name fields of the client's version, and those of find name fields
// of v1.
func merged[T any](c *rule.Check, validations declaration[T], obj, old *T, find func(own *rule.Check)) {
	own := c.Apart()
	find(own)
	tagged := rule.Tagged(c.Gates)
	enforced := validate.FilterEnforcedDeclarativeErrors(c, declared(c, validations, obj, old), tagged)
	c.Add(validate.FilterCoveredHandwrittenErrors(c, own.Errors(), enforced, tagged)...)
	if c.Version == "v1beta1" {
		for _, err := range enforced {
			reshape(err)
		}
	}
	c.Add(enforced...)
}

// tooMany reports whether a list has more than max elements, and adds an error. byType means that
// declarative validation has the same error.
func tooMany(c *rule.Check, n, max int, byType bool) bool {
	if n <= max {
		return false
	}
	err := field.TooMany(c.Path(), n, max).WithOrigin("maxItems")
	if byType {
		err = err.MarkCoveredByDeclarative()
	}
	c.Add(err)
	return true
}

// unique adds errors for duplicate keys. byType means that declarative validation has the same
// errors.
func unique[T comparable](c *rule.Check, byType bool, keys ...T) {
	seen := map[T]bool{}
	for i, key := range keys {
		if seen[key] {
			err := field.Duplicate(c.At(i).Path(), key)
			if byType {
				err = err.MarkCoveredByDeclarative()
			}
			c.Add(err)
		}
		seen[key] = true
	}
}
