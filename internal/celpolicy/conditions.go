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
	all      []condition
	ignore   bool // where one cannot be evaluated, it does not match
}

type condition struct {
	name    string
	program *Program
}

// Conditions compiles match conditions. params says that they may speak of parameters.
func (c *Compiler) Conditions(all []admissionregistrationv1.MatchCondition, params bool, failure *admissionregistrationv1.FailurePolicyType) *Conditions {
	if len(all) == 0 {
		return nil
	}
	out := &Conditions{compiler: c, ignore: failure != nil && *failure == admissionregistrationv1.Ignore}
	for _, m := range all {
		out.all = append(out.all, condition{m.Name, c.Program(Expression{
			Text: m.Expression, Declared: Declared{Params: params, Authorizer: true}, Returns: []*cel.Type{cel.BoolType},
		})})
	}
	return out
}

// Match reports whether all conditions are true. If one is false, they do not match, and unmet is
// its name: an error of another one does not count then. Otherwise an error counts as the
// failure policy says: nothing matches, or err is that of the request.
//
// Conditions see the resource that was asked for, and no namespace, whatever about says.
func (c *Conditions) Match(ctx context.Context, about About) (matches bool, unmet string, err error) {
	if c == nil {
		return true, "", nil
	}
	about.Resource, about.Namespace, about.request = RequestResource(about.Admission), nil, nil
	x := c.compiler.Evaluate(ctx, &about, ConditionsBudget)
	var errs []error
	for _, m := range c.all {
		value, err, fatal := x.Eval(m.program)
		switch {
		case fatal != nil:
			return false, "", c.failed(fatal)
		case err != nil:
			errs = append(errs, err)
		case value == types.False && unmet == "":
			unmet = m.name
		}
	}
	if unmet == "" && len(errs) > 0 {
		return false, "", c.failed(utilerrors.NewAggregate(errs))
	}
	return unmet == "", unmet, nil
}

func (c *Conditions) failed(err error) error {
	if c.ignore {
		return nil
	}
	return err
}
