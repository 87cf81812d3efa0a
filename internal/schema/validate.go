package schema

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all that is wrong with obj, a whole object that Complete or
// Default has completed. old is what it replaces, or nil: what was wrong with it
// already and did not change is not refused again.
//
// Objects of a Go type are judged by the code of their kind; for them it returns
// nil.
func (s *Schema) Validate(ctx context.Context, obj, old map[string]any) field.ErrorList {
	p := s.must()
	if p.typ != nil || p.root == nil {
		return nil
	}
	n := p.root
	var was *correlation
	if old != nil {
		was = &correlation{node: n, value: obj, was: old}
	}
	errs := n.judge(obj, nil, was)
	if n.embeds {
		errs = append(errs, n.embeddedErrors(ctx, obj, nil)...)
	}
	return append(errs, n.newListErrors(obj, old)...)
}

// ValidateStatus is Validate for a write of the status alone, of which obj is
// the whole that results. Only the status is judged by the schema, as if it were
// an object of its own.
func (s *Schema) ValidateStatus(ctx context.Context, obj, old map[string]any) field.ErrorList {
	p := s.must()
	if p.typ != nil || p.root == nil {
		return nil
	}
	const name = "status"
	var errs field.ErrorList
	n := p.root.properties[name]
	if v, ok := obj[name]; ok && n != nil {
		errs = n.judge(v, field.NewPath(name), &correlation{node: n, value: v, was: old[name]})
	}
	return append(errs, p.root.newListErrors(obj, old)...)
}

// newListErrors returns what obj has twice in sets and map lists. An old object
// that had anything twice excuses it all.
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
