package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/admission/outcome"
	client "github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object/span"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// maxReply limits the size of a webhook's response. A patch may be as large as the largest object
// that a client can send, plus the overhead of base64.
const maxReply = 8 << 20

// A callError is a failed call or an invalid response of a webhook. The failure policy decides
// about the write.
type callError struct {
	webhook string
	reason  error
	status  *status.Error // error for the client; only its code is used, in metrics
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.webhook, e.reason)
}
func (e *callError) Unwrap() error { return e.reason }

// A rejection is the error of a webhook that rejects a write.
type rejection struct{ status *status.Error }

func (e *rejection) Error() string { return e.status.Error() }

func (h *hook) failed(told *status.Error, format string, args ...any) *callError {
	return &callError{h.name, fmt.Errorf(format, args...), told}
}

// call sends an AdmissionReview to a webhook and returns its answer.
func (p *plugin) call(ctx context.Context, h *hook, w *match.Write, v *match.View, mutating bool) (*answer, error) {
	if err := h.checkDryRun(p.dryRun(w)); err != nil {
		return nil, err
	}
	version, err := h.versionOf()
	uid := string(uuid.NewUUID())
	var body []byte
	if err == nil {
		body, err = review(version, uid, w, v, p.dryRun(w))
	}
	if err != nil {
		return nil, h.failed(status.BadRequest("error creating admission objects"), "could not create admission objects: %w", err)
	}
	ctx, s := span.Start(ctx, spans[mutating])
	if s.IsRecording() {
		s.SetAttributes(described(h, w.Admission, uid)...)
	}
	defer s.End()
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	reply, err := p.Poster.Post(ctx, &h.to, client.Call{Body: body, Timeout: left(ctx), MaxReply: maxReply})
	if err != nil {
		response := status.Unavailable("error calling webhook")
		var known *status.Error
		if errors.As(err, &known) {
			response = known
		}
		return nil, h.failed(response, "failed to call webhook: %w", err)
	}
	s.AddEvent("Request completed")
	decoded, err := decodeAnswer(version, reply.Body)
	if err != nil {
		return nil, h.failed(status.Unavailable("error calling webhook"), "failed to call webhook: %w", err)
	}
	answer, err := accept(version, uid, mutating, decoded)
	if err != nil {
		return nil, h.failed(status.Unavailable("error validating webhook response"), "received invalid webhook response: %w", err)
	}
	return answer, nil
}

// spans are the names of the spans of calls: of validating and mutating webhooks.
var spans = map[bool]string{false: "Call validating webhook", true: "Call mutating webhook"}

// described returns the attributes of the span of a call, with the names of kube-apiserver.
func described(h *hook, a *registry.Admission, uid string) []attribute.KeyValue {
	d := a.Target.Definition
	of := d.GroupResource().WithVersion(a.Target.Version.Name)
	return []attribute.KeyValue{
		attribute.String("configuration", h.configuration), attribute.String("webhook", h.name),
		attribute.Stringer("resource", of), attribute.String("subresource", a.Target.Subresource),
		attribute.String("operation", string(a.Operation)), attribute.String("UID", uid),
	}
}

// left returns the time until the deadline, rounded up to whole seconds, and at least one second.
func left(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	d := time.Until(deadline)
	if whole := d.Truncate(time.Second); whole != d {
		d = whole + time.Second
	}
	return max(d, time.Second)
}

// dryRun reports whether webhooks are told that a write is a dry run.
func (p *plugin) dryRun(w *match.Write) bool { return p.Rehearsal || w.DryRun() }

// checkDryRun rejects a dry run if the webhook has side effects.
func (h *hook) checkDryRun(dryRun bool) error {
	if !dryRun {
		return nil
	}
	if h.sideEffects == nil {
		return h.failed(status.BadRequest("Webhook SideEffects is nil"), "Webhook SideEffects is nil")
	}
	if s := *h.sideEffects; s != admissionv1.SideEffectClassNone && s != admissionv1.SideEffectClassNoneOnDryRun {
		return status.BadRequest("admission webhook %q does not support dry run", h.name)
	}
	return nil
}

// tell passes on audit annotations and warnings of an answer, and returns its rejection.
func (h *hook) tell(a *registry.Admission, response *answer) error {
	for _, key := range slices.Sorted(maps.Keys(response.AuditAnnotations)) {
		annotate(a, h.name+"/"+key, response.AuditAnnotations[key])
	}
	for _, warning := range response.Warnings {
		a.Warn(warning)
	}
	if response.Allowed {
		return nil
	}
	return &rejection{denied(h.name, response.Result)}
}

// annotate adds an audit annotation if its key is valid.
func annotate(a *registry.Admission, key, value string) {
	if strings.Count(key, "/") == 1 && len(validation.IsQualifiedName(key)) == 0 {
		a.Annotate(key, value)
	}
}

// A question is one call of a webhook, with its result.
type question struct {
	hook *hook
	view *match.View

	said    *answer // nil after a failed call
	err     error
	took    time.Duration
	changed bool // the webhook has changed the object
}

// applyFailurePolicy decides about a write after a call. A rejection or a failed call is an error, unless the
// failure policy ignores the failure; open is called then.
func (p *plugin) applyFailurePolicy(ctx context.Context, q *question, a *registry.Admission, open func()) error {
	h, took := q.hook, q.took
	var call *callError
	var refused *rejection
	switch {
	case q.err == nil:
		p.Metrics.answered(h, p.kind, a.Operation, took)
		p.remember(a, q, outcome.Allowed)
		return nil
	case errors.As(q.err, &refused):
		p.Metrics.refused(h, p.kind, a.Operation, took, int(refused.status.ErrStatus.Code))
		p.remember(a, q, outcome.Denied)
		return refused.status
	case !errors.As(q.err, &call):
		p.Metrics.broken(h, p.kind, a.Operation, took)
		p.remember(a, q, outcome.Failed)
		return q.err
	}
	givenUp := errors.Is(q.err, context.Canceled)
	p.Metrics.failed(h, p.kind, a.Operation, took, int(call.status.ErrStatus.Code), givenUp)
	if !h.ignore {
		p.Log.Warn("a webhook call failed, and so does the request", "webhook", h.name, "configuration", h.configuration, "error", call.reason)
		p.remember(a, q, outcome.Failed)
		return status.Internal(call)
	}
	p.Log.Warn("a webhook call failed, and the request continues without it", "webhook", h.name, "configuration", h.configuration, "error", call.reason)
	p.remember(a, q, outcome.Ignored)
	if !givenUp {
		p.Metrics.opened(h, p.kind)
		open()
	}
	if ctx.Err() != nil {
		return timedOut()
	}
	return nil
}

// remember adds the outcome of a call.
func (p *plugin) remember(a *registry.Admission, q *question, result outcome.Result) {
	r := outcome.Report{Result: result}
	if q.said != nil {
		r.Warnings = q.said.Warnings
	}
	switch {
	case q.err != nil:
		r.Message = q.err.Error()
	case q.changed:
		r.Result = outcome.Changed
	}
	p.Outcomes.Add(a, outcome.Origin{Step: p.step, Configuration: q.hook.configuration, Name: q.hook.name}, r)
}
