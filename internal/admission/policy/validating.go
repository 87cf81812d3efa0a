package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/admission/outcome"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celpolicy"
)

const (
	// failureAnnotation is the audit annotation with failed validations.
	failureAnnotation = "validation.policy.admission.k8s.io/validation_failure"
	// maxFailures limits the number of failures in it.
	maxFailures = 50
	// maxAnnotation limits the length of the value of an audit annotation.
	maxAnnotation = 10 << 10
)

// Validating evaluates ValidatingAdmissionPolicies.
type Validating struct{ plugin[validating] }

// NewValidating returns the plugin ValidatingAdmissionPolicy.
func NewValidating(parts Dependencies, c *Config) (*Validating, error) {
	v := &Validating{}
	return v, v.init(parts, c, kinds{"ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validating policy"}, compileValidating)
}

// Validate evaluates all policies, and rejects the write if one of them denies it.
func (v *Validating) Validate(ctx context.Context, a *registry.Admission) error {
	all, err := v.find(ctx, a)
	if err != nil || len(all) == 0 {
		return err
	}
	x := &validation{
		Validating: v, w: match.NewWrite(a, v.namespaces),
		authorizer: celpolicy.NewAuthorizer(ctx, v.parts.Authorizer, a),
	}
	for _, f := range all {
		if err := x.policy(ctx, f.policy, f.bindings); err != nil {
			return err
		}
	}
	x.annotateFailures()
	return x.denied()
}

// A validation is one write for which policies are evaluated.
type validation struct {
	*Validating
	w          *match.Write
	authorizer *celpolicy.Authorizer

	denials  []denial
	failures []failure
}

// A denial is the reason for a rejected write, with its policy and binding.
type denial struct {
	policy, binding string // binding is "" for an error of the policy itself
	message         string
	reason          metav1.StatusReason
}

// A failure is a failed validation in its audit annotation.
type failure struct {
	Message           string                                     `json:"message"`
	Policy            string                                     `json:"policy"`
	Binding           string                                     `json:"binding"`
	ExpressionIndex   int                                        `json:"expressionIndex"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

// misconfigured records that a policy or a binding cannot be evaluated.
func (x *validation) misconfigured(p *policy[validating], binding string, err error) {
	what := "policy"
	if binding != "" {
		what = "binding"
	}
	message := fmt.Sprintf("failed to configure %s: %v", what, err)
	x.remember(x.w, p, binding, outcome.Failure(message, p.ignores()))
	if !p.ignores() {
		x.denials = append(x.denials, denial{policy: p.name, binding: binding, message: message})
	}
}

// policy evaluates a policy for each of its bindings. It returns an error of the request, not of
// the policy.
func (x *validation) policy(ctx context.Context, c *match.Candidate[*policy[validating]], bindings []match.Candidate[*binding]) error {
	p := c.Of
	form, err := c.Match(ctx, x.w)
	if err != nil {
		x.misconfigured(p, "", err)
		return nil
	}
	if form == nil {
		return nil
	}
	kind, err := x.params.kind(p.ParamKind)
	if err != nil {
		x.misconfigured(p, "", err)
		return nil
	}
	var all annotations
	for i := range bindings {
		b := bindings[i].Of
		matched, err := bindings[i].Match(ctx, x.w)
		if err != nil {
			x.misconfigured(p, b.name, err)
			continue
		}
		if matched == nil {
			continue
		}
		params, err := x.params.of(ctx, kind, b.ParamRef, x.w.InNamespace())
		if err != nil {
			x.misconfigured(p, b.name, err)
			continue
		}
		if err := x.binding(ctx, p, b, form, params, &all); err != nil {
			return err
		}
	}
	all.publish(p.name, x.w.Annotate)
	return nil
}

// binding evaluates a policy for one of its bindings, once for each parameter.
func (x *validation) binding(ctx context.Context, p *policy[validating], b *binding, form *match.Form, params []object.Tree, all *annotations) error {
	var view *match.View
	if len(params) > 0 {
		var err error
		if view, err = x.w.View(ctx, form); err != nil {
			x.misconfigured(p, b.name, fmt.Errorf("failed to convert object version: %w", err))
			return nil
		}
	}
	namespace, err := x.namespace(ctx, x.w)
	if err != nil {
		return err
	}
	for _, param := range params {
		about := &celpolicy.About{
			Admission: x.w.Admission, Kind: form.Kind, Resource: form.Resource, Object: view.Object, Old: view.Old,
			Namespace: namespace, Params: param, Authorizer: x.authorizer, Common: &view.Common,
		}
		decisions, noted := p.compiled().evaluate(ctx, x.matcher(p.name), about, p.ignores())
		if decisions != nil {
			x.remember(x.w, p, b.name, report(b, decisions, noted))
		}
		for i, d := range decisions {
			switch {
			case d.denied:
				x.act(p, b, i, &d)
			case d.failed:
				x.parts.Metrics.validation(p, b, &d, "allow")
			}
		}
		for _, n := range noted {
			if n.err != "" {
				x.denials = append(x.denials, denial{policy: p.name, binding: b.name, message: n.err})
				x.parts.Metrics.validation(p, b, &decision{failed: true, message: n.err, took: n.took}, "deny")
			} else {
				all.add(n.key, n.value)
			}
		}
	}
	return nil
}

// report returns the report about an evaluation: of the failure that rejects the write, or else of one that is reported,
// or else of one that is ignored.
func report(b *binding, decisions []decision, noted []note) outcome.Report {
	r := outcome.Report{Result: outcome.Allowed}
	denies := slices.Contains(b.ValidationActions, admissionregistrationv1.Deny)
	for _, d := range decisions {
		switch {
		case d.denied && denies && d.failed:
			return outcome.Failure(d.message, false)
		case d.denied && denies:
			return outcome.Report{Result: outcome.Denied, Message: d.message}
		case d.denied && r.Result != outcome.Reported:
			r = outcome.Report{Result: outcome.Reported, Message: d.message}
		case d.failed && r.Result == outcome.Allowed:
			r = outcome.Failure(d.message, true)
		}
	}
	for _, n := range noted {
		if n.err != "" {
			return outcome.Failure(n.err, false)
		}
	}
	return r
}

// act applies the actions of a binding for a failed validation.
func (x *validation) act(p *policy[validating], b *binding, at int, d *decision) {
	for _, action := range b.ValidationActions {
		x.parts.Metrics.validation(p, b, d, strings.ToLower(string(action)))
		switch action {
		case admissionregistrationv1.Deny:
			x.denials = append(x.denials, denial{p.name, b.name, d.message, d.reason})
		case admissionregistrationv1.Audit:
			x.failures = append(x.failures, failure{d.message, b.PolicyName, b.name, at, b.ValidationActions})
		case admissionregistrationv1.Warn:
			x.w.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.name, b.name, d.message))
		}
	}
}

func (x *validation) annotateFailures() {
	if len(x.failures) == 0 {
		return
	}
	if value, err := json.Marshal(x.failures[:min(len(x.failures), maxFailures)]); err == nil {
		x.w.Annotate(failureAnnotation, string(value))
	}
}

// denied returns the first denial as an error, or nil.
func (x *validation) denied() error {
	if len(x.denials) == 0 {
		return nil
	}
	first := x.denials[0]
	message := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", first.policy, first.binding, first.message)
	if first.binding == "" {
		message = fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", first.policy, first.message)
	}
	err := x.w.Forbidden(errors.New(message))
	var refused *status.Error
	if !errors.As(err, &refused) {
		return err
	}
	if refused.ErrStatus.Reason = first.reason; first.reason == "" {
		refused.ErrStatus.Reason = metav1.StatusReasonInvalid
	}
	refused.ErrStatus.Code = codeOf(refused.ErrStatus.Reason)
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{Message: message})
	return refused
}

func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}

// annotations are the audit annotations of a policy, for all bindings together.
type annotations struct {
	keys   []string
	values map[string][]string
}

func (n *annotations) add(key, value string) {
	value = value[:min(len(value), maxAnnotation)]
	if n.values == nil {
		n.values = map[string][]string{}
	}
	if n.values[key] == nil {
		n.keys = append(n.keys, key)
	}
	if !slices.Contains(n.values[key], value) {
		n.values[key] = append(n.values[key], value)
	}
}

func (n *annotations) publish(policy string, annotate func(key, value string)) {
	for _, key := range n.keys {
		annotate(policy+"/"+key, strings.Join(n.values[key], ", "))
	}
}
