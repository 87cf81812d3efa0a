package dra

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// declaration is what the Go types of the API say of a part of an object.
type declaration[T any] func(ctx context.Context, op operation.Operation, at *field.Path, obj, old *T) field.ErrorList

// declared returns what the Go type of a part of an object has against it. What an update
// leaves alone is not looked at again.
func declared[T any](c *rule.Check, validations declaration[T], obj, old *T) field.ErrorList {
	op := operation.Operation{Type: operation.Create, Options: map[string]bool{"DRAPartitionableDevicesType": false}}
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

// merged adds to a Check what a function finds of a value, and what its type says: of an error
// that both have, the one of the type. The type says it of the version of the client, and the
// function of v1.
func merged[T any](c *rule.Check, validations declaration[T], obj, old *T, find func(own *rule.Check)) {
	own := c.Apart()
	find(own)
	enforced := validate.FilterEnforcedDeclarativeErrors(c, declared(c, validations, obj, old), true)
	c.Add(validate.FilterCoveredHandwrittenErrors(c, own.Errors(), enforced, true)...)
	if c.Version == "v1beta1" {
		for _, err := range enforced {
			reshape(err)
		}
	}
	c.Add(enforced...)
}

// tooMany reports whether a list has more than max elements, and says so. The type says it
// too if byType.
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

// unique finds keys that are in a list more than once. The type says it too if byType.
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
