// Package celprogram evaluates CEL expressions, and stops those that exceed their budget.
//
// A Language creates programs of compiled expressions. A Program is safe for concurrent evaluations,
// each with a Meter of its own. The package knows the language and the cost of each step. It does not
// know the data and the authors of expressions, or their total budget.
package celprogram

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// CallBudget limits the cost of one evaluation of an expression.
	CallBudget = 1_000_000
	// OverBudget is the error of an evaluation that went over its budget.
	OverBudget = "operation cancelled: actual cost limit exceeded"
)

// A Program is an expression that can be evaluated, by many at once.
type Program struct {
	root  interpreter.InterpretableV2
	steps int // one more than the highest id of a step
}

// A Scope is the context of an evaluation.
type Scope struct {
	Meter *Meter
	// Variables has the values of the variables.
	Variables Variables
}

// Variables find the values of variables.
type Variables interface {
	ResolveName(name string) (any, bool)
}

// ResolveName finds a variable.
func (s *Scope) ResolveName(name string) (any, bool) { return s.Variables.ResolveName(name) }

// Parent is nil.
func (s *Scope) Parent() interpreter.Activation { return nil }

// Eval evaluates an expression and returns its cost.
func (p *Program) Eval(s *Scope) (result ref.Val, cost uint64, err error) {
	s.Meter.begin(p.steps)
	frame, err := interpreter.NewExecutionFrame(s)
	if err != nil {
		return nil, 0, err
	}
	defer frame.Close()
	defer func() {
		if r := recover(); r != nil {
			if cancelled, ok := r.(interpreter.EvalCancelledError); ok {
				err = cancelled
			} else {
				err = fmt.Errorf("internal error: %v", r)
			}
		}
		cost = s.Meter.spent
	}()
	result = p.root.Exec(frame)
	if types.IsError(result) {
		err = result.(*types.Err)
	}
	return result, 0, err
}

// A Language creates programs with common functions.
type Language struct{ dispatcher interpreter.Dispatcher }

// NewLanguage returns the Language of an environment, and of environments extended from it without
// further functions.
func NewLanguage(env *cel.Env) (*Language, error) {
	l := &Language{interpreter.NewDispatcher()}
	for _, f := range env.Functions() {
		bindings, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		if err := l.dispatcher.Add(bindings...); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Program creates a program with the options that the Kubernetes libraries need. The environment knows
// the types of objects that the expression constructs.
func (l *Language) Program(env *cel.Env, checked *cel.Ast) (*Program, error) {
	adapter, provider := env.CELTypeAdapter(), env.CELTypeProvider()
	attributes := interpreter.NewAttributeFactory(env.Container, adapter, provider)
	in := interpreter.NewInterpreter(l.dispatcher, env.Container, provider, adapter, attributes)
	tree := checked.NativeRep()
	p := &planner{nodes: map[int64]ast.Expr{}, looked: map[int64]bool{}, conditionals: map[interpreter.Attribute][]int32{}}
	p.read(tree.Expr(), false)
	root, err := in.NewInterpretable(tree,
		interpreter.CustomDecoratorV2(shortcut),
		interpreter.Optimize(),
		interpreter.CompileRegexConstants(library.FindRegexOptimization, library.FindAllRegexOptimization, interpreter.MatchesRegexOptimization),
		interpreter.CustomDecoratorV2(p.watch))
	if err != nil {
		return nil, err
	}
	out := &Program{root: root, steps: int(p.highest) + 1}
	*p = planner{} // attributes refer to it
	return out, nil
}
