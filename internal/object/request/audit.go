package request

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An Audit records a request for the audit log. All bodies are JSON. They are only copied if the level
// of the request includes them.
type Audit interface {
	// WantsBody reports whether the level includes the bodies of requests.
	WantsBody() bool
	// WantsAnswer reports whether the level includes the bodies of answers.
	WantsAnswer() bool
	// Object records the object of the request. Further calls have no effect.
	Object(o ObjectMeta, body func() []byte)
	// Body records a body that is no object with metadata: a patch, options.
	Body(body []byte)
	// Answer records an answer that is no Status.
	Answer(body []byte)
	// AnswerStatus records an answer.
	AnswerStatus(s *metav1.Status, body func() []byte)
}

// An ObjectMeta identifies an object in the audit log.
type ObjectMeta struct {
	Namespace, Name, ResourceVersion string
	UID                              types.UID
}

// AuditAnswer records an answer for the audit log, if its level includes it.
func AuditAnswer(ctx context.Context, body func() ([]byte, error)) {
	audit := AuditOf(ctx)
	if audit == nil || !audit.WantsAnswer() {
		return
	}
	if logged, err := body(); err == nil {
		audit.Answer(logged)
	}
}

// AuditOf returns the Audit of the request of a context, or nil.
func AuditOf(ctx context.Context) Audit {
	if q := From(ctx); q != nil {
		return q.Audit
	}
	return nil
}
