package structural

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of obj, a whole object after Complete or Default. old is the replaced
// object, or nil: errors of unchanged values are not reported.
func (s Schema) Validate(ctx context.Context, obj, old map[string]any) field.ErrorList {
	return append(s.ValidateValues(obj, old), s.ValidateParts(ctx, obj, old)...)
}

// ValidateStatus is Validate for a write of the status alone; obj is the whole result. Only the status
// is validated, as an object of its own.
func (s Schema) ValidateStatus(obj, old map[string]any) field.ErrorList {
	return append(s.ValidateStatusValues(obj, old), s.ValidateLists(obj, old)...)
}

// ValidateValues is the part of Validate for single values.
func (s Schema) ValidateValues(obj, old map[string]any) field.ErrorList {
	n := s.root
	if n == nil {
		return nil
	}
	var was *correlation
	if old != nil {
		was = &correlation{node: n, value: obj, was: old}
	}
	return n.validate(obj, nil, was)
}

// ValidateStatusValues is the part of ValidateStatus for single values.
func (s Schema) ValidateStatusValues(obj, old map[string]any) field.ErrorList {
	const name = "status"
	root := s.root
	if root == nil {
		return nil
	}
	n := root.properties[name]
	v, ok := obj[name]
	if !ok || n == nil {
		return nil
	}
	return n.validate(v, field.NewPath(name), &correlation{node: n, value: v, was: old[name]})
}

// ValidateParts is the part of Validate for embedded objects and unique elements of lists.
func (s Schema) ValidateParts(ctx context.Context, obj, old map[string]any) field.ErrorList {
	n := s.root
	if n == nil {
		return nil
	}
	var errs field.ErrorList
	if n.embeds {
		errs = n.embeddedErrors(ctx, obj, nil)
	}
	return append(errs, n.newListErrors(obj, old)...)
}

// ValidateLists is the part of Validate for unique elements of lists.
func (s Schema) ValidateLists(obj, old map[string]any) field.ErrorList {
	n := s.root
	if n == nil {
		return nil
	}
	return n.newListErrors(obj, old)
}

// newListErrors returns the duplicates in sets and map lists of obj. An old object with any duplicates
// excuses all of them.
func (n *node) newListErrors(obj, old map[string]any) field.ErrorList {
	if n.distinct(obj) {
		return nil
	}
	errs := n.listErrors(obj, nil)
	if old != nil && len(errs) > 0 && len(n.listErrors(old, nil)) > 0 {
		return nil
	}
	return errs
}
