package crd

import (
	"fmt"
	"log/slog"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/crd/validation"
)

// validate returns the errors of a CustomResourceDefinition with its defaults. old is the replaced
// one, or nil. compatible is the release of the oldest server that must understand new rules. report is called for
// each schema with rules.
func validate(obj, old object.Tree, compatible gate.Release, report func(*celrule.Report)) field.ErrorList {
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
	errs, costs := validation.Validate(crd, before, compatible)
	for _, r := range costs {
		report(r)
	}
	if len(errs) == 0 {
		errs = checkRules(crd, before)
	}
	return errs
}

// validateStatus returns the errors of a write of the status.
func validateStatus(obj, _ map[string]any) field.ErrorList {
	crd, err := typedWithoutSchemas(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return validation.ValidateStatus(crd)
}

// Costs returns the estimated costs of the rules of a CustomResourceDefinition, which it may change:
// one report for each schema with rules. An undecodable one has none.
func Costs(obj object.Tree) (costs []*celrule.Report) {
	obj, _, err := newTypeSchema().Complete(obj)
	if err != nil {
		return nil
	}
	keepOwnStatus(obj, nil)
	prepare(obj, nil)
	validate(obj, nil, gate.Current-1, func(r *celrule.Report) { costs = append(costs, r) })
	return costs
}

// logCosts returns a callback that logs the costs of a rejected CustomResourceDefinition, and the
// limits that would help.
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
