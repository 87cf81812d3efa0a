package celprogram

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// shortcut makes or and orValue of optional values evaluate their argument only if needed.
func shortcut(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	switch o := call.OverloadID(); {
	case call.Function() == "or" && (o == "" || o == "optional_or_optional"):
		return &optionalOr{id: call.ID(), first: call.Args()[0], second: call.Args()[1]}, nil
	case call.Function() == "orValue" && (o == "" || o == "optional_orValue_value"):
		return &optionalOr{id: call.ID(), first: call.Args()[0], second: call.Args()[1], value: true}, nil
	}
	return i, nil
}

// optionalOr is the first of two optional values if that has one, and otherwise
// the second.
type optionalOr struct {
	id            int64
	first, second interpreter.InterpretableV2
	value         bool // for orValue, which returns the value of the optional
}

// ID of the step.
func (o *optionalOr) ID() int64 { return o.id }

// Eval evaluates the step.
func (o *optionalOr) Eval(a interpreter.Activation) ref.Val { return o.Exec(interpreter.AsFrame(a)) }

// Exec evaluates the step.
func (o *optionalOr) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	first := o.first.Exec(frame)
	if types.IsUnknownOrError(first) {
		return first
	}
	optional, ok := first.(*types.Optional)
	switch {
	case !ok:
		return types.NoSuchOverloadErr()
	case !optional.HasValue():
		return o.second.Exec(frame)
	case o.value:
		return optional.GetValue()
	default:
		return first
	}
}

// A planner adds the data of the meter to the steps of a program.
type planner struct {
	nodes map[int64]ast.Expr
	// looked are the steps whose values are used. Other values need not be kept.
	looked       map[int64]bool
	conditionals map[interpreter.Attribute][]int32
	highest      int64
}

// read visits an expression. inner means that a selection continues from it.
func (p *planner) read(e ast.Expr, inner bool) {
	p.nodes[e.ID()] = e
	p.highest = max(p.highest, e.ID())
	each := func(all ...ast.Expr) {
		for _, c := range all {
			p.looked[c.ID()] = true
			p.read(c, false)
		}
	}
	switch e.Kind() {
	case ast.IdentKind:
		p.looked[e.ID()] = p.looked[e.ID()] || !inner
	case ast.SelectKind:
		p.looked[e.ID()] = p.looked[e.ID()] || !inner
		p.read(e.AsSelect().Operand(), true)
	case ast.CallKind:
		p.readCall(e, inner, each)
	case ast.ListKind:
		each(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			each(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			each(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		each(c.IterRange())
		for _, part := range []ast.Expr{c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			p.read(part, false)
		}
	}
}

func (p *planner) readCall(e ast.Expr, inner bool, each func(...ast.Expr)) {
	call := e.AsCall()
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		p.looked[e.ID()] = p.looked[e.ID()] || !inner
		p.read(call.Args()[0], true)
		each(call.Args()[1:]...)
		return
	case operators.Conditional:
		p.looked[e.ID()] = p.looked[e.ID()] || !inner
	}
	if call.IsMemberFunction() {
		each(call.Target())
	}
	each(call.Args()...)
}

func ids(steps []interpreter.InterpretableV2) []int32 {
	out := make([]int32, len(steps))
	for i, s := range steps {
		out[i] = int32(s.ID())
	}
	return out
}

func nodeIDs(nodes ...ast.Expr) []int32 {
	out := make([]int32, len(nodes))
	for i, n := range nodes {
		out[i] = int32(n.ID())
	}
	return out
}
