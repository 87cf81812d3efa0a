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
	var errs field.ErrorList
	if !n.valid(obj) {
		var was *correlation
		if old != nil {
			was = &correlation{node: n, value: obj, was: old}
		}
		e := &explainer{}
		r := e.explain(n, obj, "", was)
		errs = r.errors()
	}
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
	if v, ok := obj[name]; ok && n != nil && !n.valid(v) {
		e := &explainer{base: name}
		r := e.explain(n, v, "", &correlation{node: n, value: v, was: old[name]})
		errs = r.errors()
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

// Blocking reports whether errs, which Validate or ValidateStatus returned or
// which were found in metadata, are such that expressions (CEL) must not be
// evaluated: they rely on types, on required fields and on the bounds that their
// cost was estimated by. Other errors leave them safe.
func Blocking(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeRequired, field.ErrorTypeTypeInvalid, field.ErrorTypeNotSupported,
			field.ErrorTypeTooLong, field.ErrorTypeTooMany:
			return true
		}
	}
	return false
}
