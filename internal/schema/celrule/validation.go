package celrule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/celprogram"
)

const outOfBudget = "validation failed due to running out of cost budget, no further validation rules will be run"

// A validation walks over one object and evaluates the rules of its places. It stops when the budget
// is exhausted.
type validation struct {
	ctx    context.Context
	base   *field.Path
	budget int64
	spent  bool
	errs   field.ErrorList
	warn   func(message string)

	steps []step
	few   [12]step // of which steps are, where that is enough
	vars  variables
	meter celprogram.Meter
	scope celprogram.Scope // of vars and meter
}

// A step is an element of the path to the value under validation.
type step struct {
	kind stepKind
	name string
	at   int
}

type stepKind uint8

const (
	fieldStep stepKind = iota
	keyStep
	indexStep
)

func (x *validation) path() *field.Path {
	p := x.base
	for _, s := range x.steps {
		switch s.kind {
		case fieldStep:
			p = p.Child(s.name)
		case keyStep:
			p = p.Key(s.name)
		default:
			p = p.Index(s.at)
		}
	}
	return p
}

func (x *validation) push(s step) { x.steps = append(x.steps, s) }
func (x *validation) pop()        { x.steps = x.steps[:len(x.steps)-1] }

func (x *validation) fail(errs ...*field.Error) { x.errs = append(x.errs, errs...) }

// stop adds an error and ends the validation.
func (x *validation) stop(err *field.Error) {
	x.fail(err)
	x.spent = true
}

// place validates v at n and the values below it. was is the old value, or nil.
func (x *validation) place(n *node, v, was any, c correlation) {
	if v == nil {
		return // rules of a place speak of values that are there
	}
	if len(n.rules) > 0 {
		if x.rules(n, v, was, c); x.spent {
			return
		}
	}
	switch v := v.(type) {
	case []any:
		if n.ruledItems != nil {
			old, _ := was.([]any)
			x.items(n, v, old, c)
		}
	case map[string]any:
		old, _ := was.(map[string]any)
		if n.ruledEntries != nil {
			x.entries(n, v, old, c)
		}
		for _, f := range n.ruledFields {
			value, ok := v[f.name]
			if !ok || x.spent {
				continue
			}
			x.push(step{kind: fieldStep, name: f.name})
			x.place(f.node, value, old[f.name], c.field(f.name))
			x.pop()
		}
	}
}

func (x *validation) items(n *node, items, old []any, c correlation) {
	correlated := n.index(old)
	for i, item := range items {
		if x.spent {
			return
		}
		was := correlated.get(item)
		x.push(step{kind: indexStep, at: i})
		x.place(n.ruledItems, item, was, c.element(i, was))
		x.pop()
	}
}

func (x *validation) entries(n *node, entries, old map[string]any, c correlation) {
	keys := make([]string, 0, len(entries))
	for k := range entries {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if x.spent {
			return
		}
		x.push(step{kind: keyStep, name: k})
		x.place(n.ruledEntries, entries[k], old[k], c.field(k))
		x.pop()
	}
}

// rules validates v by the rules of n.
func (x *validation) rules(n *node, v, was any, c correlation) {
	all, err := n.compiledRules()
	if err != nil {
		x.fail(field.Invalid(x.path(), n.typeName, fmt.Sprintf("rule compiler initialization error: %v", err)))
		return
	}
	if x.budget <= 0 {
		x.stop(field.Invalid(x.path(), n.typeName, outOfBudget))
		return
	}
	self := n.self()
	x.vars = variables{self: self.value(v), node: self, before: was}
	x.meter.Context = x.ctx
	x.scope = celprogram.Scope{Meter: &x.meter, Variables: &x.vars}
	for i, p := range all {
		if x.spent {
			return
		}
		r := n.rules[i]
		if p.err != nil {
			x.fail(field.Invalid(x.path(), n.typeName, fmt.Sprintf("rule compile error: %v", p.err)))
			continue
		}
		if p.program == nil || p.usesOld && was == nil && !r.optionalOld() {
			continue
		}
		if err := x.ctx.Err(); err != nil {
			x.stop(ended(x.path(), err))
			return
		}
		if p.usesOld {
			x.vars.remember(r.optionalOld())
		}
		x.rule(n, r, p, v, c)
	}
}

// rule validates v by one rule.
func (x *validation) rule(n *node, r *rule, p *compiled, v any, c correlation) {
	result, cost, err := p.program.Eval(&x.scope)
	if !x.pay(cost) {
		x.stop(field.Invalid(x.path(), n.typeName, outOfBudget))
		return
	}
	if err != nil {
		switch text := err.Error(); {
		case isEnded(err):
			x.stop(ended(x.path(), err))
		case strings.HasPrefix(text, "no such overload"):
			x.fail(field.Invalid(x.path(), n.typeName, fmt.Sprintf("'%v': call arguments did not match a supported operator, function or macro signature for rule: %v", err, r.text())))
		case strings.HasPrefix(text, celprogram.OverBudget):
			x.stop(field.Invalid(x.path(), n.typeName, fmt.Sprintf("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %v", err, r.text())))
		default:
			x.fail(field.Invalid(x.path(), n.typeName, fmt.Sprintf("%v evaluating rule: %v", err, r.text())))
		}
		return
	}
	if result != types.True {
		x.broken(n, r, p, v, c)
	}
}

// isEnded reports whether an evaluation was canceled.
func isEnded(err error) bool {
	var cancelled interpreter.EvalCancelledError
	return errors.As(err, &cancelled) && cancelled.Cause == interpreter.ContextCancelled
}

func ended(at *field.Path, err error) *field.Error {
	return field.InternalError(at, fmt.Errorf("the request ended before all validation rules were checked: %w", err))
}

// pay charges a cost to the budget, and reports whether it suffices.
func (x *validation) pay(cost uint64) bool {
	if cost > uint64(max(x.budget, 0)) {
		return false
	}
	x.budget -= int64(cost)
	return true
}

// broken adds the error of a broken rule for v, with the message of the rule.
func (x *validation) broken(n *node, r *rule, p *compiled, v any, c correlation) {
	at := x.path()
	if r.where != "" && p.messageErr == nil {
		at = at.Child(r.where)
	}
	fail := func(err *field.Error) {
		if p.usesOld || !c.unchanged() {
			x.fail(err)
		} else if x.warn != nil {
			x.warn(err.Error())
		}
	}
	detail := ""
	if p.message != nil {
		var err *field.Error
		if detail, err = x.message(n, r, p, at); err != nil {
			fail(err)
			x.spent = true
			return
		}
	}
	if detail == "" {
		detail = r.failure()
	}
	if n.typeName == "object" || n.typeName == "array" {
		v = field.OmitValueType{}
	}
	switch reason := r.Reason; {
	case reason == nil:
		fail(field.Invalid(at, v, detail))
	case *reason == apiextensionsv1.FieldValueForbidden:
		fail(field.Forbidden(at, detail))
	case *reason == apiextensionsv1.FieldValueRequired:
		fail(field.Required(at, detail))
	case *reason == apiextensionsv1.FieldValueDuplicate:
		fail(field.Duplicate(at, v))
	default:
		fail(field.Invalid(at, v, detail))
	}
}

// message evaluates a messageExpression. It returns "" for an unusable result, and an error that ends
// the validation.
func (x *validation) message(n *node, r *rule, p *compiled, at *field.Path) (string, *field.Error) {
	x.vars.old = nil
	if n.programs.usesOld {
		x.vars.remember(false) // a message never sees an optional, as in Kubernetes
	}
	result, cost, err := p.message.Eval(&x.scope)
	switch {
	case isEnded(err):
		return "", ended(at, err)
	case !x.pay(cost):
		return "", field.Invalid(at, n.typeName, "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run")
	case err != nil && strings.HasPrefix(err.Error(), celprogram.OverBudget):
		return "", field.Invalid(at, n.typeName, fmt.Sprintf("no further validation rules will be run due to call cost exceeds limit for messageExpression: %q", r.MessageExpression))
	case err != nil:
		return "", nil
	}
	text, ok := result.Value().(string)
	text = strings.TrimSpace(text)
	if !ok || len(text) > messageLimit || strings.Contains(text, "\n") {
		return "", nil
	}
	return text, nil
}

// text is a rule in an error.
func (r *rule) text() string {
	if r.Message != "" {
		return strings.TrimSpace(r.Message)
	}
	return strings.TrimSpace(r.Rule)
}

// failure is the message of a rule that has no other.
func (r *rule) failure() string {
	if r.Message == "" {
		return "failed rule: " + r.text()
	}
	return strings.TrimSpace(r.Message)
}

// variables are the variables of the rules of a place.
type variables struct {
	self ref.Val
	// old is the value of oldSelf, nil if there is none.
	old ref.Val

	node   *node
	before any     // the old value, nil if there is none
	was    ref.Val // the CEL value of before, created at its first use
}

// remember sets oldSelf to the old value.
func (a *variables) remember(optional bool) {
	if a.before != nil && a.was == nil {
		a.was = a.node.value(a.before)
	}
	switch {
	case !optional:
		a.old = a.was
	case a.before == nil:
		a.old = types.OptionalNone
	default:
		a.old = types.OptionalOf(a.was)
	}
}

// ResolveName finds a variable.
func (a *variables) ResolveName(name string) (any, bool) {
	switch name {
	case selfName:
		return a.self, true
	case oldSelfName:
		return a.old, a.old != nil
	default:
		return nil, false
	}
}
