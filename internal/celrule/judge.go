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
)

const (
	outOfBudget = "validation failed due to running out of cost budget, no further validation rules will be run"
	// overBudget is the error of an evaluation that went over its budget.
	overBudget = "operation cancelled: actual cost limit exceeded"
)

// A judge goes through one object. It is done when there is no budget left.
type judge struct {
	ctx    context.Context
	base   *field.Path
	budget int64
	spent  bool
	errs   field.ErrorList
	warn   func(message string)

	steps []step
	few   [12]step // of which steps are, where that is enough
	vars  variables
	meter meter
}

// A step is part of the path to what is being judged.
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

func (j *judge) path() *field.Path {
	p := j.base
	for _, s := range j.steps {
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

func (j *judge) push(s step) { j.steps = append(j.steps, s) }
func (j *judge) pop()        { j.steps = j.steps[:len(j.steps)-1] }

func (j *judge) fail(errs ...*field.Error) { j.errs = append(j.errs, errs...) }

// stop fails and ends it all.
func (j *judge) stop(err *field.Error) {
	j.fail(err)
	j.spent = true
}

// place judges v at n and what is below it. was is what it replaces, or nil.
func (j *judge) place(n *node, v, was any, c correlation) {
	if v == nil {
		return // rules of a place speak of values that are there
	}
	if len(n.rules) > 0 {
		if j.rules(n, v, was, c); j.spent {
			return
		}
	}
	switch v := v.(type) {
	case []any:
		if n.ruledItems != nil {
			old, _ := was.([]any)
			j.items(n, v, old, c)
		}
	case map[string]any:
		old, _ := was.(map[string]any)
		if n.ruledEntries != nil {
			j.entries(n, v, old, c)
		}
		for _, f := range n.ruledFields {
			value, ok := v[f.name]
			if !ok || j.spent {
				continue
			}
			j.push(step{kind: fieldStep, name: f.name})
			j.place(f.node, value, old[f.name], c.field(f.name))
			j.pop()
		}
	}
}

func (j *judge) items(n *node, items, old []any, c correlation) {
	correlated := n.index(old)
	for i, item := range items {
		if j.spent {
			return
		}
		was := correlated.get(item)
		j.push(step{kind: indexStep, at: i})
		j.place(n.ruledItems, item, was, c.element(i, was))
		j.pop()
	}
}

func (j *judge) entries(n *node, entries, old map[string]any, c correlation) {
	keys := make([]string, 0, len(entries))
	for k := range entries {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if j.spent {
			return
		}
		j.push(step{kind: keyStep, name: k})
		j.place(n.ruledEntries, entries[k], old[k], c.field(k))
		j.pop()
	}
}

// rules judges v by the rules of n.
func (j *judge) rules(n *node, v, was any, c correlation) {
	all, err := n.compiledRules()
	if err != nil {
		j.fail(field.Invalid(j.path(), n.typeName, fmt.Sprintf("rule compiler initialization error: %v", err)))
		return
	}
	if j.budget <= 0 {
		j.stop(field.Invalid(j.path(), n.typeName, outOfBudget))
		return
	}
	self := n.self()
	j.vars = variables{self: self.value(v), node: self, before: was, meter: &j.meter}
	for i, p := range all {
		if j.spent {
			return
		}
		r := n.rules[i]
		if p.err != nil {
			j.fail(field.Invalid(j.path(), n.typeName, fmt.Sprintf("rule compile error: %v", p.err)))
			continue
		}
		if p.program == nil || p.usesOld && was == nil && !r.optionalOld() {
			continue
		}
		if err := j.ctx.Err(); err != nil {
			j.stop(ended(j.path(), err))
			return
		}
		if p.usesOld {
			j.vars.remember(r.optionalOld())
		}
		j.rule(n, r, p, v, c)
	}
}

// rule judges v by one rule.
func (j *judge) rule(n *node, r *rule, p *compiled, v any, c correlation) {
	result, cost, err := p.program.eval(&j.vars)
	if !j.pay(cost) {
		j.stop(field.Invalid(j.path(), n.typeName, outOfBudget))
		return
	}
	if err != nil {
		switch text := err.Error(); {
		case isEnded(err):
			j.stop(ended(j.path(), err))
		case strings.HasPrefix(text, "no such overload"):
			j.fail(field.Invalid(j.path(), n.typeName, fmt.Sprintf("'%v': call arguments did not match a supported operator, function or macro signature for rule: %v", err, r.text())))
		case strings.HasPrefix(text, overBudget):
			j.stop(field.Invalid(j.path(), n.typeName, fmt.Sprintf("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %v", err, r.text())))
		default:
			j.fail(field.Invalid(j.path(), n.typeName, fmt.Sprintf("%v evaluating rule: %v", err, r.text())))
		}
		return
	}
	if result != types.True {
		j.broken(n, r, p, v, c)
	}
}

// isEnded reports whether an evaluation ended because nobody waits for it.
func isEnded(err error) bool {
	var cancelled interpreter.EvalCancelledError
	return errors.As(err, &cancelled) && cancelled.Cause == interpreter.ContextCancelled
}

func ended(at *field.Path, err error) *field.Error {
	return field.InternalError(at, fmt.Errorf("the request ended before all validation rules were checked: %w", err))
}

// pay takes a cost from the budget, if it is enough.
func (j *judge) pay(cost uint64) bool {
	if cost > uint64(max(j.budget, 0)) {
		return false
	}
	j.budget -= int64(cost)
	return true
}

// broken says that v breaks a rule, in the words of the rule.
func (j *judge) broken(n *node, r *rule, p *compiled, v any, c correlation) {
	at := j.path()
	if r.where != "" && p.messageErr == nil {
		at = at.Child(r.where)
	}
	fail := func(err *field.Error) {
		if p.usesOld || !c.unchanged() {
			j.fail(err)
		} else if j.warn != nil {
			j.warn(err.Error())
		}
	}
	detail := ""
	if p.message != nil {
		var err *field.Error
		if detail, err = j.message(n, r, p, at); err != nil {
			fail(err)
			j.spent = true
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

// message evaluates a messageExpression. It returns "" where that does not give
// a message that can be used, and an error where that ends it all.
func (j *judge) message(n *node, r *rule, p *compiled, at *field.Path) (string, *field.Error) {
	j.vars.old = nil
	if n.programs.usesOld {
		j.vars.remember(false) // a message never sees an optional, as in Kubernetes
	}
	result, cost, err := p.message.eval(&j.vars)
	switch {
	case isEnded(err):
		return "", ended(at, err)
	case !j.pay(cost):
		return "", field.Invalid(at, n.typeName, "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run")
	case err != nil && strings.HasPrefix(err.Error(), overBudget):
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

// variables are what the rules of a place speak of.
type variables struct {
	self ref.Val
	// old is oldSelf for what is being evaluated, nil if there is none.
	old ref.Val

	node   *node
	before any     // the old value, nil if there is none
	was    ref.Val // before as it is presented, once somebody needed it

	meter *meter
}

// remember makes the old value oldSelf.
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

// Parent is nil.
func (a *variables) Parent() interpreter.Activation { return nil }
