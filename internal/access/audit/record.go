package audit

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// A Record is the audit of one request. It implements request.Audit. The goroutine of the request
// uses it.
type Record struct {
	log      *Log
	decision *Decision
	request  *request.Request
	event    auditv1.Event
	recorded bool // the object of the request
}

// Begin returns the Record of a request, or nil if the policy does not select it. The Request has its
// user, if any.
func (l *Log) Begin(q *request.Request, r *http.Request, received time.Time) *Record {
	if l == nil {
		return nil
	}
	d := l.policy.Decide(&authz.Attributes{User: q.User, Info: q.Info})
	l.metrics.levels.WithLabelValues(string(d.Level)).Inc()
	if d.Level == audit.LevelNone {
		return nil
	}
	record := &Record{log: l, decision: d, request: q, event: newEvent(q, r, received)}
	record.event.Level = auditv1.Level(d.Level)
	return record
}

// Received sends the event of the stage RequestReceived. It returns false if the request must be
// rejected, because a sink needs the event and has failed.
func (r *Record) Received() bool {
	if r.send(audit.StageRequestReceived, r.event.RequestReceivedTimestamp) {
		return true
	}
	r.log.metrics.rejected.Inc()
	return false
}

// Failed records the message of a request that is rejected before its user is known. A Status replaces it.
func (r *Record) Failed(message string) { r.status().Message = message }

// Started sends the event of the stage ResponseStarted, of an answer with a code.
func (r *Record) Started(code int) {
	r.status().Code = int32(code)
	r.send(audit.StageResponseStarted, metav1.NowMicro())
}

// Complete sends the event of the stage ResponseComplete. code is 0 if the connection ended without an
// answer; longRunning requests then have no event of the stage ResponseStarted yet.
func (r *Record) Complete(code int, longRunning bool) {
	if code != 0 {
		r.status().Code = int32(code)
	} else if r.event.ResponseStatus == nil {
		r.event.ResponseStatus = &metav1.Status{Code: http.StatusOK, Status: metav1.StatusSuccess, Message: "Connection closed early"}
		if longRunning {
			r.send(audit.StageResponseStarted, metav1.NowMicro())
		}
	}
	r.send(audit.StageResponseComplete, metav1.NowMicro())
}

// Panicked sends the event of the stage Panic.
func (r *Record) Panicked(reason any) {
	r.event.ResponseStatus = &metav1.Status{
		Code: http.StatusInternalServerError, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("APIServer panic'd: %v", reason),
	}
	r.send(audit.StagePanic, metav1.NowMicro())
}

// status returns the status of the answer.
func (r *Record) status() *metav1.Status {
	if r.event.ResponseStatus == nil {
		r.event.ResponseStatus = &metav1.Status{}
	}
	return r.event.ResponseStatus
}

// WantsBody implements request.Audit.
func (r *Record) WantsBody() bool { return r.decision.includes(audit.LevelRequest) }

// WantsAnswer implements request.Audit.
func (r *Record) WantsAnswer() bool { return r.decision.includes(audit.LevelRequestResponse) }

// Object implements request.Audit.
func (r *Record) Object(o request.ObjectMeta, body func() []byte) {
	if r.recorded {
		return
	}
	r.recorded = true
	if ref := r.event.ObjectRef; ref != nil {
		if ref.Namespace == "" {
			ref.Namespace = o.Namespace
		}
		if ref.Name == "" {
			ref.Name = o.Name
		}
		ref.UID, ref.ResourceVersion = o.UID, o.ResourceVersion
	}
	if r.WantsBody() {
		r.event.RequestObject = raw(r.clean(body()))
	}
}

// Body implements request.Audit.
func (r *Record) Body(body []byte) {
	if r.WantsBody() {
		r.event.RequestObject = raw(body)
	}
}

// Answer implements request.Audit.
func (r *Record) Answer(body []byte) {
	if r.WantsAnswer() {
		r.event.ResponseObject = raw(r.clean(body))
	}
}

// AnswerStatus implements request.Audit.
func (r *Record) AnswerStatus(s *metav1.Status, body func() []byte) {
	r.event.ResponseStatus = &metav1.Status{Status: s.Status, Message: s.Message, Reason: s.Reason, Details: s.Details, Code: s.Code}
	if r.WantsAnswer() {
		r.event.ResponseObject = raw(body())
	}
}

func (r *Record) clean(body []byte) []byte {
	if r.decision.OmitManagedFields {
		return withoutManagers(body)
	}
	return body
}

// send sends the event of a stage to all sinks. It returns false if a sink that must not lose events
// has failed.
func (r *Record) send(stage audit.Stage, at metav1.MicroTime) bool {
	if r.decision.omits(stage) {
		return true
	}
	r.log.metrics.events.Inc()
	e := r.event
	e.Stage, e.StageTimestamp = auditv1.Stage(stage), at
	if q := r.request; q.Impersonator != nil {
		as := q.User.Info()
		e.ImpersonatedUser = &as
		if q.Constraint != "" {
			e.AuthenticationMetadata = &auditv1.AuthenticationMetadata{ImpersonationConstraint: q.Constraint}
		}
	}
	for _, a := range r.request.Annotations {
		if a.Request && !r.WantsBody() {
			continue
		}
		if e.Annotations == nil {
			e.Annotations = map[string]string{}
		}
		e.Annotations[a.Key] = a.Value
	}
	encoded, err := encode(&e)
	if err != nil {
		r.log.failed("audit", err, 1)
		return true
	}
	ok := true
	for _, s := range r.log.sinks {
		ok = s.deliver(encoded) && ok
	}
	return ok
}
