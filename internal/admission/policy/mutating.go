package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/admission/outcome"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celpolicy"
)

// mutating are the compiled expressions of a MutatingAdmissionPolicy.
type mutating struct {
	compiler   *celpolicy.Compiler
	conditions *celpolicy.Conditions
	mutations  []mutation
}

func compileMutating(shared *celpolicy.Shared, s *policySpec) *mutating {
	params := s.ParamKind != nil
	c := shared.Compiler(s.Variables, params)
	out := &mutating{compiler: c, conditions: c.Conditions(s.MatchConditions, params, s.FailurePolicy)}
	program := func(text string, makes *cel.Type) *celpolicy.Program {
		declared := celpolicy.Declared{Params: params, Authorizer: true, Patches: true}
		return c.Program(celpolicy.Expression{Text: text, Declared: declared, Returns: []*cel.Type{makes}})
	}
	for _, m := range s.Mutations {
		switch {
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			out.mutations = append(out.mutations, mutation{program(m.JSONPatch.Expression, celpolicy.JSONPatchType), patched})
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			out.mutations = append(out.mutations, mutation{program(m.ApplyConfiguration.Expression, celpolicy.ObjectType), configured})
		}
	}
	return out
}

// Mutating evaluates MutatingAdmissionPolicies.
type Mutating struct{ plugin[mutating] }

// NewMutating returns the plugin MutatingAdmissionPolicy.
func NewMutating(parts Dependencies, c *Config) (*Mutating, error) {
	m := &Mutating{}
	return m, m.init(parts, c, kinds{"MutatingAdmissionPolicy", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutating policy"}, compileMutating)
}

// A memory keeps state between the first evaluation of policies and their reinvocation.
type memory struct {
	// last is the object after the last mutation.
	last object.Tree
	// asked are the evaluated invocations with reinvocationPolicy IfNeeded. due are those of them
	// after which the object has changed.
	asked, due map[invocationKey]bool
}

func newMemory() any { return &memory{asked: map[invocationKey]bool{}, due: map[invocationKey]bool{}} }

// changed makes the evaluated invocations due for reinvocation: the object has changed since.
func (m *memory) changed() {
	maps.Copy(m.due, m.asked)
	clear(m.asked)
}

// An invocationKey identifies an invocation within a write.
type invocationKey struct{ policy, binding, paramNamespace, paramName string }

// An invocation is one evaluation of a policy, for a binding and a parameter.
type invocation struct {
	of      *policy[mutating]
	binding string
	form    *match.Form
	param   object.Tree
}

func (i *invocation) key() invocationKey {
	return invocationKey{i.of.name, i.binding, object.Namespace(i.param), object.Name(i.param)}
}

// Mutate evaluates all policies in order. On a second call it evaluates only those with
// reinvocationPolicy IfNeeded that have not seen the present object.
func (m *Mutating) Mutate(ctx context.Context, a *registry.Admission) error {
	if a.Operation == registry.Delete {
		return nil
	}
	all, err := m.find(ctx, a)
	if err != nil || len(all) == 0 {
		return err
	}
	x := &change{Mutating: m, w: match.NewWrite(a, m.namespaces)}
	for _, f := range all {
		x.collect(ctx, f.policy, f.bindings)
	}
	if len(x.invocations) > 0 {
		if err := x.invoke(ctx); err != nil {
			return err
		}
	}
	return x.refused()
}

// A change is one write for which policies are evaluated.
type change struct {
	*Mutating
	w *match.Write
	// invocations are those that match the object as received.
	invocations []invocation
	namespaceOf *corev1.Namespace
	authorizer  *celpolicy.Authorizer
	problems    []problem
	// made is true after a mutation, even if it changed nothing.
	made bool
}

// A problem is an error of a policy that rejects the write.
type problem struct {
	message string
	reason  metav1.StatusReason
}

// fail records an error of a policy or a binding. The failure policy Ignore drops it.
func (x *change) fail(p *policy[mutating], binding string, reason metav1.StatusReason, err error) {
	x.remember(x.w, p, binding, outcome.Failure(err.Error(), p.ignores()))
	if p.ignores() {
		return
	}
	message := fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", p.name, binding, err)
	if binding == "" {
		message = fmt.Sprintf("policy %q denied request: %v", p.name, err)
	}
	x.problems = append(x.problems, problem{message, reason})
}

// collect adds the invocations of a policy.
func (x *change) collect(ctx context.Context, c *match.Candidate[*policy[mutating]], bindings []match.Candidate[*binding]) {
	p := c.Of
	misconfigured := func(what, binding string, err error) {
		x.fail(p, binding, "", fmt.Errorf("failed to configure %s: %w", what, err))
	}
	form, err := c.Match(ctx, x.w)
	if err != nil {
		misconfigured("policy", "", err)
		return
	}
	if form == nil {
		return
	}
	kind, err := x.params.kind(p.ParamKind)
	if err != nil {
		misconfigured("policy", "", err)
		return
	}
	for i := range bindings {
		b := bindings[i].Of
		matched, err := bindings[i].Match(ctx, x.w)
		switch {
		case err != nil:
			misconfigured("binding", b.name, err)
			continue
		case matched == nil:
			continue
		}
		if _, err := x.w.View(ctx, form); err != nil {
			misconfigured("policy", "", err)
			continue
		}
		params, err := x.params.of(ctx, kind, b.ParamRef, x.w.InNamespace())
		if err != nil {
			misconfigured("binding", b.name, err)
			continue
		}
		for _, param := range params {
			x.invocations = append(x.invocations, invocation{p, b.name, form, param})
		}
	}
}

// invoke evaluates all invocations. It returns an error of the request, not of a policy.
func (x *change) invoke(ctx context.Context) (err error) {
	a := x.w.Admission
	m := a.Recall(x.Mutating, newMemory).(*memory)
	if a.Again && !object.Equal(m.last, a.Object) {
		m.changed()
	}
	if x.namespaceOf, err = x.namespace(ctx, x.w); err != nil {
		return err
	}
	x.authorizer = celpolicy.NewAuthorizer(ctx, x.parts.Authorizer, a)
	for i := range x.invocations {
		if err := x.one(ctx, &x.invocations[i], m); err != nil {
			return err
		}
	}
	if err := x.w.ConvertBack(ctx); err != nil {
		return status.Internal(fmt.Errorf("failed to convert object: %w", err))
	}
	if x.made { // as in Kubernetes, even a policy whose own mutation made the change
		m.changed()
		a.Reinvoke()
	}
	if len(m.asked) > 0 {
		m.last = object.CloneTree(a.Object)
	}
	return nil
}

// one evaluates one policy, and applies all of its mutations.
func (x *change) one(ctx context.Context, i *invocation, m *memory) error {
	p := i.of.compiled()
	v, err := x.w.View(ctx, i.form)
	if err != nil {
		return status.Internal(err)
	}
	matches, err := x.matcher(i.of.name)(ctx, p.conditions, x.about(i, v))
	if err != nil {
		x.fail(i.of, i.binding, metav1.StatusReasonInvalid, err)
		return nil
	}
	if !matches || x.w.Again && !m.due[i.key()] {
		return nil
	}
	before, failed := v.Object, false
	for _, mutation := range p.mutations {
		if v.Object == nil {
			break
		}
		begun := time.Now()
		changed, err := mutation.make(ctx, p.compiler, x.about(i, v), x.w.Target.Subresource, i.form)
		x.parts.Metrics.mutation(i, time.Since(begun), err)
		var answer *status.Error
		switch {
		case errors.As(err, &answer):
			return err
		case err != nil:
			failed = true
			x.fail(i.of, i.binding, metav1.StatusReasonInvalid, err)
		default:
			x.made = true
			if !object.Equal(v.Object, changed) {
				x.w.Change(v, changed)
			}
		}
	}
	result := outcome.Allowed
	if !object.Equal(before, v.Object) {
		m.changed()
		x.w.Reinvoke()
		result = outcome.Changed
	}
	if !failed {
		x.remember(x.w, i.of, i.binding, outcome.Report{Result: result})
	}
	if i.of.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
		m.asked[i.key()] = true
	}
	return nil
}

func (x *change) about(i *invocation, v *match.View) *celpolicy.About {
	return &celpolicy.About{
		Admission: x.w.Admission, Kind: i.form.Kind, Resource: i.form.Resource, Object: v.Object, Old: v.Old,
		Namespace: x.namespaceOf, Params: i.param, Authorizer: x.authorizer,
	}
}

// refused returns all problems as one error with the message of the first, or nil.
func (x *change) refused() error {
	if len(x.problems) == 0 {
		return nil
	}
	err := x.w.Forbidden(errors.New("admission request denied by policy"))
	var refused *status.Error
	if !errors.As(err, &refused) {
		return err
	}
	refused.ErrStatus.Message = x.problems[0].message
	if reason := x.problems[0].reason; reason != "" {
		refused.ErrStatus.Reason = reason
	}
	for _, p := range x.problems {
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{Message: p.message})
	}
	return refused
}
