package celprogram

import (
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// watch wraps a step with a cost or a used value, so that the meter counts it.
func (p *planner) watch(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	id := i.ID()
	keep := p.looked[id]
	p.highest = max(p.highest, id)
	switch step := i.(type) {
	case *watchedAttribute, *watchedConst, *watched, *watchedCall:
		return i, nil
	case interpreter.InterpretableAttribute:
		return p.attribute(step), nil
	case interpreter.InterpretableConst:
		if keep {
			return &watchedConst{step, int32(id)}, nil
		}
		return i, nil
	case interpreter.InterpretableCall:
		return &watchedCall{step, int32(id), ids(step.Args()), priceOf(step), keep}, nil
	case interpreter.InterpretableConstructor:
		made := &watched{InterpretableV2: step, id: int32(id), keep: keep, all: ids(step.InitVals()), cost: common.StructCreateBaseCost}
		switch step.Type() {
		case types.ListType:
			made.cost = common.ListCreateBaseCost
		case types.MapType:
			made.cost = common.MapCreateBaseCost
		}
		return made, nil
	}
	w := &watched{InterpretableV2: i, id: int32(id), keep: keep}
	switch e := p.nodes[id]; {
	case e == nil:
	case e.Kind() == ast.ComprehensionKind:
		w.drops = nodeIDs(e.AsComprehension().IterRange())
	case e.Kind() == ast.CallKind && (e.AsCall().FunctionName() == operators.LogicalAnd || e.AsCall().FunctionName() == operators.LogicalOr):
		w.drops = nodeIDs(e.AsCall().Args()...)
	}
	if !keep && w.drops == nil {
		return i, nil
	}
	return w, nil
}

func (p *planner) attribute(step interpreter.InterpretableAttribute) *watchedAttribute {
	id := step.ID()
	w := &watchedAttribute{InterpretableAttribute: step, id: int32(id), keep: p.looked[id], planner: p}
	if e := p.nodes[id]; e != nil {
		switch {
		case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly():
			w.test = true
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Conditional:
			args := e.AsCall().Args()
			p.conditionals[step.Attr()] = nodeIDs(args[2], args[1], args[0])
		}
	}
	w.branches = p.conditionals[step.Attr()]
	return w
}

// watchedConst is a constant with a used value.
type watchedConst struct {
	interpreter.InterpretableConst
	id int32
}

// Exec returns the constant.
func (w *watchedConst) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := w.Value()
	if m := meterOf(frame.Activation); m != nil {
		m.push(w.id, value)
	}
	return value
}

// Eval returns the constant.
func (w *watchedConst) Eval(a interpreter.Activation) ref.Val {
	return w.Exec(interpreter.AsFrame(a))
}

// watchedCall is a call of a function.
type watchedCall struct {
	interpreter.InterpretableV2
	id    int32
	args  []int32
	price price
	keep  bool
}

// Exec calls the function.
func (w *watchedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	result := w.InterpretableV2.Exec(frame)
	m := meterOf(frame.Activation)
	if m == nil {
		return result
	}
	if args, ok := m.takeAll(w.args); ok {
		m.spent += w.price(args, result)
	}
	if w.keep {
		m.push(w.id, result)
	}
	m.done()
	return result
}

// Eval calls the function.
func (w *watchedCall) Eval(a interpreter.Activation) ref.Val {
	return w.Exec(interpreter.AsFrame(a))
}

// watched is a step that has a fixed cost.
type watched struct {
	interpreter.InterpretableV2
	id    int32
	drops []int32 // steps whose values are no longer needed
	all   []int32 // the same, but only up to the first that has none
	cost  uint64
	keep  bool
}

// Exec evaluates the step.
func (w *watched) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	result := w.InterpretableV2.Exec(frame)
	m := meterOf(frame.Activation)
	if m == nil {
		return result
	}
	for _, step := range w.drops {
		m.take(step)
	}
	m.takeAll(w.all)
	m.spent += w.cost
	if w.keep {
		m.push(w.id, result)
	}
	m.done()
	return result
}

// Eval evaluates the step.
func (w *watched) Eval(a interpreter.Activation) ref.Val { return w.Exec(interpreter.AsFrame(a)) }

// watchedAttribute is a variable, or a selection from a value.
type watchedAttribute struct {
	interpreter.InterpretableAttribute
	planner *planner // until it is planned
	id      int32
	keep    bool
	test    bool // has() is free
	// branches of a conditional, and its condition, which has no step of its own.
	branches []int32
}

// AddQualifier selects from the attribute.
func (w *watchedAttribute) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	id := q.ID()
	keep := w.planner.looked[id]
	w.planner.highest = max(w.planner.highest, id)
	step := watchedSelect{Qualifier: q, id: int32(id), keep: keep, adapter: w.Adapter()}
	switch qualifier := q.(type) {
	case interpreter.ConstantQualifier:
		q = &constSelect{step, qualifier}
	case *watchedAttribute:
		step.Qualifier, step.attribute = qualifier.InterpretableAttribute, qualifier
		q = &attributeSelect{step, qualifier.InterpretableAttribute}
	case interpreter.Attribute:
		q = &attributeSelect{step, qualifier}
	default:
		q = &step
	}
	_, err := w.InterpretableAttribute.AddQualifier(q)
	w.id, w.keep = int32(w.ID()), w.planner.looked[w.ID()]
	if w.branches != nil { // both select, and are the same step then
		w.branches = []int32{w.id, w.id, w.branches[2]}
		w.planner.conditionals[w.Attr()] = w.branches
	}
	return w, err
}

// account counts a resolved attribute.
func (w *watchedAttribute) account(m *Meter) {
	if w.branches != nil {
		for _, step := range w.branches {
			m.take(step)
		}
	} else {
		m.take(w.id)
		m.spent += common.SelectAndIdentCost
	}
	if w.test {
		m.spent -= common.SelectAndIdentCost
	}
}

// Exec resolves the attribute.
func (w *watchedAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	result := w.InterpretableAttribute.Exec(frame)
	m := meterOf(frame.Activation)
	if m == nil {
		return result
	}
	w.account(m)
	if w.keep {
		m.push(w.id, result)
	}
	m.done()
	return result
}

// Eval resolves the attribute.
func (w *watchedAttribute) Eval(a interpreter.Activation) ref.Val {
	return w.Exec(interpreter.AsFrame(a))
}

// watchedSelect is a selection: of a field, of a key, of an element.
type watchedSelect struct {
	interpreter.Qualifier
	id        int32
	keep      bool
	adapter   types.Adapter
	attribute *watchedAttribute // the Qualifier, if that is a step
}

// Qualify selects.
func (w *watchedSelect) Qualify(vars interpreter.Activation, obj any) (any, error) {
	out, err := w.Qualifier.Qualify(vars, obj)
	w.account(vars, out, err)
	return out, err
}

// QualifyIfPresent selects what may not be there.
func (w *watchedSelect) QualifyIfPresent(vars interpreter.Activation, obj any, presenceOnly bool) (any, bool, error) {
	out, present, err := w.Qualifier.QualifyIfPresent(vars, obj, presenceOnly)
	if present || presenceOnly {
		w.account(vars, out, err)
	}
	return out, present, err
}

func (w *watchedSelect) account(vars interpreter.Activation, out any, err error) {
	m := meterOf(vars)
	if m == nil {
		return
	}
	if w.attribute != nil {
		w.attribute.account(m)
	} else {
		m.spent++
	}
	if w.keep {
		var value ref.Val
		if v, ok := out.(ref.Val); ok {
			value = v
		} else if err == nil && out != nil {
			value = w.adapter.NativeToValue(out)
		}
		m.push(w.id, value)
	}
	m.done()
}

// constSelect selects by a constant. The interpreter needs its value.
type constSelect struct {
	watchedSelect
	constant interpreter.ConstantQualifier
}

// Value returns the constant.
func (s *constSelect) Value() ref.Val { return s.constant.Value() }

// attributeSelect selects by an attribute, which the interpreter may extend.
type attributeSelect struct {
	watchedSelect
	by interpreter.Attribute
}

// AddQualifier selects from the attribute.
func (s *attributeSelect) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	return s.by.AddQualifier(q)
}

// Resolve resolves the attribute.
func (s *attributeSelect) Resolve(vars interpreter.Activation) (any, error) {
	return s.by.Resolve(vars)
}
