package request

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/status"
)

// Fail answers with the Status of an error. It writes nothing if the client has disconnected.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		record(r, status.Of(err))
		return
	}
	if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		failLate(w, r)
		return
	}
	s := status.Of(err)
	if d := s.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	AnswerStatus(w, r, s)
}

// failLate answers a request whose time is up, whatever its error. As in Kubernetes, the Status
// has no apiVersion and kind, so clients report that the server may still be working.
func failLate(w http.ResponseWriter, r *http.Request) {
	s := status.Of(status.Timeout("request did not complete within the allotted timeout", 0))
	record(r, s)
	s.TypeMeta = metav1.TypeMeta{}
	body, _ := json.Marshal(&s) // cannot fail
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(body)
}

// Limit returns the parameter limit of a query, a number from 1 to most. Its default is otherwise.
func Limit(query url.Values, otherwise, most int) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return otherwise, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, status.BadRequest("limit: Invalid value: %q: must be a number from 1 to %d", text, most)
	}
	return limit, nil
}

// Allows reports whether a request has one of the methods. It answers others with 405.
func Allows(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
	return false
}

// AnswerStatus answers with a Status, in the format that the client accepts. The default code is
// 200.
func AnswerStatus(w http.ResponseWriter, r *http.Request, s metav1.Status) {
	format, accepted := codec.AcceptStatus(r)
	code := int(s.Code)
	if code == 0 {
		code = http.StatusOK
	}
	if accepted { // as in Kubernetes
		record(r, s)
	}
	Answer(w, format, code, format.RenderStatus(s))
}

// record records a Status for the audit log.
func record(r *http.Request, s metav1.Status) {
	if audit := AuditOf(r.Context()); audit != nil {
		audit.AnswerStatus(&s, func() []byte { return codec.Format{}.RenderStatus(s) })
	}
}

// Answer answers with a document.
func Answer(w http.ResponseWriter, format codec.Format, code int, doc []byte) {
	h := w.Header()
	h.Set("Content-Type", format.ContentType())
	h.Set("Content-Length", strconv.Itoa(len(doc)))
	w.WriteHeader(code)
	_, _ = w.Write(doc)
}
