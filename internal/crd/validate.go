package crd

import (
	"context"
	"fmt"
	"log/slog"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/celrule"
	"github.com/anykind/anykind/internal/crd/validation"
	"github.com/anykind/anykind/internal/object"
)

// validate returns what is wrong with a CustomResourceDefinition, whose defaults are
// filled in. old is what it replaces, or nil. report is called for each schema that has
// rules.
func validate(obj, old object.Tree, report func(*celrule.Report)) field.ErrorList {
	crd, err := typed(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	var before *v1.CustomResourceDefinition
	if old != nil {
		if before, err = typed(old); err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
	}
	errs, costs := validation.Validate(crd, before)
	for _, r := range costs {
		report(r)
	}
	return errs
}

// validateStatus returns what is wrong with the status that somebody writes.
func validateStatus(obj, _ map[string]any) field.ErrorList {
	crd, err := typedWithoutSchemas(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return validation.ValidateStatus(crd)
}

// A Verdict is what a server would say to a CustomResourceDefinition that is new
// to it.
type Verdict struct {
	Errors field.ErrorList
	// Unknown are the fields that would be dropped. kubectl asks to refuse them.
	Unknown []string
	// Costs are what the rules may cost, one report for each schema with rules.
	Costs []*celrule.Report
}

// Check returns the verdict on obj, which it may change. It does what a server does
// to a new object, as far as that takes nothing but the object. The error says that
// obj cannot be read as a CustomResourceDefinition.
func Check(ctx context.Context, obj object.Tree) (*Verdict, error) {
	s := newTypeSchema()
	obj, unknown, err := s.Complete(obj)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Unknown: unknown}
	keepOwnStatus(obj, nil)
	prepare(obj, nil)
	v.Errors = append(v.Errors, s.Validate(ctx, obj, nil)...)
	v.Errors = append(v.Errors, validate(obj, nil, func(r *celrule.Report) { v.Costs = append(v.Costs, r) })...)
	return v, nil
}

// logCosts returns what tells the log why a CustomResourceDefinition is refused
// for the cost of its rules, and what would help.
func (r *Registrar) logCosts(obj object.Tree) func(*celrule.Report) {
	return func(report *celrule.Report) {
		for _, e := range report.TooExpensive() {
			args := []any{"name", object.Name(obj), "path", e.Path.String(), "cost", e.Cost, "limit", e.Limit}
			for i, b := range e.Bounds(e.Limit) {
				args = append(args, slog.String(fmt.Sprintf("bound%d", i+1), fmt.Sprintf("%s: %s: %d", b.Path, b.Keyword, b.Value)))
			}
			r.o.Logger.Info("a rule of a CustomResourceDefinition costs too much", args...)
		}
	}
}
