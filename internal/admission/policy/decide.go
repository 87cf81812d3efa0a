package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/anykind/anykind/internal/schema/celpolicy"
)

// maxMessage limits the length of the result of a messageExpression.
const maxMessage = 5 << 10

// validating are the compiled expressions of a ValidatingAdmissionPolicy.
type validating struct {
	compiler    *celpolicy.Compiler
	conditions  *celpolicy.Conditions
	validations []compiledValidation
	annotations []compiledAnnotation
}

type compiledValidation struct {
	admissionregistrationv1.Validation
	program, message *celpolicy.Program // message may be nil
}

type compiledAnnotation struct {
	key     string
	program *celpolicy.Program
}

func compileValidating(shared *celpolicy.Shared, s *policySpec) *validating {
	params := s.ParamKind != nil
	c := shared.Compiler(s.Variables, params)
	out := &validating{compiler: c, conditions: c.Conditions(s.MatchConditions, params, s.FailurePolicy)}
	declared := celpolicy.Declared{Params: params, Authorizer: true}
	for _, v := range s.Validations {
		compiled := compiledValidation{Validation: v, program: c.Program(celpolicy.Expression{
			Text: v.Expression, Declared: declared, Returns: []*cel.Type{cel.BoolType},
		})}
		if v.MessageExpression != "" {
			compiled.message = c.Program(celpolicy.Expression{
				Text: v.MessageExpression, Declared: celpolicy.Declared{Params: params}, Returns: []*cel.Type{cel.StringType},
			})
		}
		out.validations = append(out.validations, compiled)
	}
	for _, n := range s.AuditAnnotations {
		out.annotations = append(out.annotations, compiledAnnotation{n.Key, c.Program(celpolicy.Expression{
			Text: n.ValueExpression, Declared: declared, Returns: []*cel.Type{cel.StringType, cel.NullType},
		})})
	}
	return out
}

// A decision is the result of one validation.
type decision struct {
	denied  bool
	failed  bool // the evaluation failed, which the failure policy may ignore
	message string
	reason  metav1.StatusReason
	took    time.Duration
}

// A note is an audit annotation, or the error of its expression.
type note struct {
	key, value, err string
	took            time.Duration
}

// evaluate evaluates a policy for a write. With ignore, errors allow the write.
func (v *validating) evaluate(ctx context.Context, matching matcher, about *celpolicy.About, ignore bool) ([]decision, []note) {
	failed := func(err error) []decision { return []decision{{denied: !ignore, failed: true, message: err.Error()}} }
	matches, err := matching(ctx, v.conditions, about)
	if err != nil {
		return failed(err), nil
	}
	if !matches {
		return nil, nil
	}
	decisions, fatal := v.decide(ctx, about, ignore)
	if fatal != nil {
		return failed(fatal), nil
	}
	notes, fatal := v.annotate(ctx, about, ignore)
	if fatal != nil {
		return failed(fatal), nil
	}
	return decisions, notes
}

// decide evaluates all validations, and then all messageExpressions.
func (v *validating) decide(ctx context.Context, about *celpolicy.About, ignore bool) ([]decision, *apiservercel.Error) {
	x := v.compiler.Evaluate(ctx, about, celpolicy.Budget)
	type result struct {
		value ref.Val
		err   *apiservercel.Error
		took  time.Duration
	}
	var few [4]result
	results := few[:]
	if len(v.validations) > len(few) {
		results = make([]result, len(v.validations))
	}
	for i := range v.validations {
		var fatal *apiservercel.Error
		begun := time.Now()
		if results[i].value, results[i].err, fatal = x.Eval(v.validations[i].program); fatal != nil {
			return nil, fatal
		}
		results[i].took = time.Since(begun)
	}
	messages, unsaid := v.messages(ctx, about, x.Left())
	decisions := make([]decision, len(v.validations))
	for i := range decisions {
		r, d := &results[i], &decisions[i]
		d.took = r.took
		switch {
		case r.err != nil:
			d.denied, d.failed, d.message = !ignore, true, r.err.Error()
		case unsaid != nil:
			d.denied, d.failed, d.message = !ignore, true, fmt.Sprintf("failed messageExpression: %s", unsaid)
		case r.value != types.True:
			d.denied, d.reason, d.message = true, metav1.StatusReasonInvalid, v.validations[i].say(messages, i)
			if reason := v.validations[i].Reason; reason != nil {
				d.reason = *reason
			}
		}
	}
	return decisions, nil
}

// messages evaluates all messageExpressions, even of validations that pass, because they share a
// budget. They have no authorizer. A failed expression results in "". Without expressions there are no messages.
func (v *validating) messages(ctx context.Context, about *celpolicy.About, budget int64) ([]string, error) {
	if !slices.ContainsFunc(v.validations, func(c compiledValidation) bool { return c.message != nil }) {
		return nil, nil
	}
	out := make([]string, len(v.validations))
	known := *about
	known.Authorizer = nil
	x := v.compiler.Evaluate(ctx, &known, budget)
	for i := range v.validations {
		if v.validations[i].message == nil {
			continue
		}
		value, err, fatal := x.Eval(v.validations[i].message)
		if fatal != nil {
			if errors.Is(fatal, apiservercel.ErrInternal) || errors.Is(fatal, apiservercel.ErrOutOfBudget) {
				return nil, fatal
			}
			return out, nil
		}
		if text, ok := valueOf(value).(string); ok && err == nil {
			out[i] = text
		}
	}
	return out, nil
}

func valueOf(v ref.Val) any {
	if v == nil {
		return nil
	}
	return v.Value()
}

// say returns the message of a failed validation. messages are the results of messageExpressions.
func (v *compiledValidation) say(messages []string, at int) string {
	message := ""
	if messages != nil {
		message = strings.TrimSpace(messages[at])
	}
	if len(message) > maxMessage || strings.Contains(message, "\n") {
		message = ""
	}
	if message == "" {
		message = strings.TrimSpace(v.Message)
	}
	if message == "" {
		message = fmt.Sprintf("failed expression: %v", strings.TrimSpace(v.Expression))
	}
	return message
}

// annotate evaluates the audit annotations.
func (v *validating) annotate(ctx context.Context, about *celpolicy.About, ignore bool) ([]note, *apiservercel.Error) {
	if len(v.annotations) == 0 {
		return nil, nil
	}
	known := *about
	known.Authorizer = nil
	x := v.compiler.Evaluate(ctx, &known, celpolicy.Budget)
	var notes []note
	for _, n := range v.annotations {
		begun := time.Now()
		value, err, fatal := x.Eval(n.program)
		took := time.Since(begun)
		switch {
		case fatal != nil:
			return nil, fatal
		case err != nil:
			if !ignore {
				notes = append(notes, note{key: n.key, err: err.Error(), took: took})
			}
			continue
		}
		switch value.Type() {
		case types.StringType:
			if text := strings.TrimSpace(value.Value().(string)); text != "" {
				notes = append(notes, note{key: n.key, value: text})
			}
		case types.NullType:
		default:
			notes = append(notes, note{key: n.key, took: took, err: fmt.Sprintf("valueExpression '%v' resulted in unsupported return type: %v. "+
				"Return type must be either string or null.", n.program.Text(), value.Type())})
		}
	}
	return notes, nil
}
