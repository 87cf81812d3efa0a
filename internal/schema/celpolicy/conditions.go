package celpolicy

import (
	"context"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Conditions are the match conditions of a webhook or of a policy, compiled. Nil are none.
type Conditions struct {
	compiler *Compiler
	all      []*Program
	ignore   bool // where one cannot be evaluated, it does not match
}

// Conditions compiles match conditions. params declares the variable params.
func (c *Compiler) Conditions(all []admissionregistrationv1.MatchCondition, params bool, failure *admissionregistrationv1.FailurePolicyType) *Conditions {
	if len(all) == 0 {
		return nil
	}
	out := &Conditions{compiler: c, ignore: failure != nil && *failure == admissionregistrationv1.Ignore}
	for _, m := range all {
		out.all = append(out.all, c.Program(Expression{
			Text: m.Expression, Declared: Declared{Params: params, Authorizer: true}, Returns: []*cel.Type{cel.BoolType},
		}))
	}
	return out
}

// Match reports whether all conditions are true. One false condition means no match, even if another
// one fails. Otherwise the failure policy decides about an error: no match, or err fails the request.
// broken counts the failed conditions before the first false one.
//
// Conditions see the requested resource and no namespace, even if about has one.
func (c *Conditions) Match(ctx context.Context, about About) (matches bool, broken int, err error) {
	if c == nil {
		return true, 0, nil
	}
	about.Resource, about.Namespace, about.Common = RequestResource(about.Admission), nil, about.Common.forConditions()
	x := c.compiler.Evaluate(ctx, &about, ConditionsBudget)
	var errs []error
	unmet := false
	for _, m := range c.all {
		value, err, fatal := x.Eval(m)
		switch {
		case fatal != nil:
			return false, 0, c.failed(fatal)
		case unmet:
		case err != nil:
			errs = append(errs, err)
		case value == types.False:
			unmet = true
		}
	}
	if !unmet && len(errs) > 0 {
		return false, len(errs), c.failed(utilerrors.NewAggregate(errs))
	}
	return !unmet, len(errs), nil
}

func (c *Conditions) failed(err error) error {
	if c.ignore {
		return nil
	}
	return err
}
