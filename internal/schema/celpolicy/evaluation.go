package celpolicy

import (
	"context"
	"math"

	"github.com/google/cel-go/common/types/ref"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

const (
	// Budget limits the cost of the evaluations of one kind of expressions of a policy, for one object
	// and one parameter.
	Budget = 10_000_000
	// ConditionsBudget limits the cost of all match conditions of a webhook or a policy.
	ConditionsBudget = 2_500_000
)

// An Evaluation evaluates expressions about one write, one after the other, within one budget. A
// variable is evaluated once, at its first use.
type Evaluation struct {
	ctx   context.Context
	about *About
	// left is the remaining budget.
	left int64
	// spent is the cost of variables since the last charged expression.
	spent int64

	compiler  *Compiler
	variables variables
}

// Evaluate starts an Evaluation.
func (c *Compiler) Evaluate(ctx context.Context, about *About, budget int64) *Evaluation {
	if about.Common == nil {
		about.Common = &Common{}
	}
	return &Evaluation{ctx: ctx, about: about, left: budget, compiler: c}
}

// Left returns the remaining budget.
func (x *Evaluation) Left() int64 { return x.left }

// Eval evaluates an expression. err is the error of the expression. fatal means that the budget is
// exhausted and the evaluation must stop.
func (x *Evaluation) Eval(p *Program) (value ref.Val, err, fatal *apiservercel.Error) {
	if p.err != nil {
		return nil, failed(apiservercel.ErrorTypeInvalid, "compilation error: %v", p.err), nil
	}
	value, cost, problem := x.about.Common.eval(x.ctx, p.program, x)
	variables := x.spent
	x.spent = 0
	if !x.pay(variables) || cost > math.MaxInt64 || !x.pay(int64(cost)) {
		fatal = failed(apiservercel.ErrorTypeInvalid, "validation failed due to running out of cost budget, no further validation rules will be run")
		fatal.Cause = apiservercel.ErrOutOfBudget
		return nil, nil, fatal
	}
	if problem != nil {
		return nil, failed(apiservercel.ErrorTypeInvalid, "expression '%v' resulted in error: %v", p.text, problem), nil
	}
	return value, nil, nil
}

func (x *Evaluation) pay(cost int64) bool {
	if cost > x.left {
		return false
	}
	x.left -= cost
	return true
}

// ResolveName finds a variable.
func (x *Evaluation) ResolveName(name string) (any, bool) {
	switch {
	case name != "variables":
		return x.about.resolve(name)
	case x.compiler.variables == nil:
		return nil, true
	}
	return x.values(), true
}
