package crd

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/celrule"
	"github.com/anykind/anykind/internal/object"
)

// A Verdict is what a server would say to a CustomResourceDefinition that is new
// to it.
type Verdict struct {
	Errors field.ErrorList
	// Unknown are the fields that would be dropped. kubectl asks to refuse them.
	Unknown []string
	// Costs are what the rules may cost, one report for each schema with rules.
	Costs []*celrule.Report
}

// Judge returns the verdict on obj, which it may change. The error says that obj
// cannot be read as what it is meant to be.
func Judge(ctx context.Context, obj object.Tree) (*Verdict, error) {
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
