// Package status is the closed set of errors that clients see.
//
// All packages that work on API objects return these errors. Of is the one place where an
// error becomes a Status. The messages are those of Kubernetes' error constructors, which this
// package calls; its functions are the complete list of errors of anykind.
package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Error is an error with a Status.
type Error = apierrors.StatusError

// BadRequest says that the request cannot be understood.
func BadRequest(format string, args ...any) *Error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// Invalid says what is wrong with the fields of an object, each thing once: what is
// validated by several is often found by all of them.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) *Error {
	e := apierrors.NewInvalid(kind, name, nil)
	errs = distinct(errs)
	causes := make([]metav1.StatusCause, 0, len(errs))
	for _, err := range errs {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseType(err.Type), Message: err.ErrorBody(), Field: err.Field})
	}
	e.ErrStatus.Details.Causes = causes
	if len(errs) > 0 {
		e.ErrStatus.Message += ": " + Join(errs)
	}
	return e
}

// Join says several errors as one, each once. What it says is what the aggregates
// of apimachinery say, which take time by the square of their number: an object
// can be wrong in as many places as its request has room for.
func Join(errs field.ErrorList) string {
	errs = distinct(errs)
	var b strings.Builder
	for i, err := range errs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(err.Error())
	}
	if len(errs) > 1 {
		return "[" + b.String() + "]"
	}
	return b.String()
}

// distinct returns the errors that say different things.
func distinct(errs field.ErrorList) field.ErrorList {
	told := make(map[string]bool, len(errs))
	out := make(field.ErrorList, 0, len(errs))
	for _, err := range errs {
		if message := err.Error(); !told[message] {
			told[message] = true
			out = append(out, err)
		}
	}
	return out
}

// NotFound says that an object does not exist.
func NotFound(resource schema.GroupResource, name string) *Error {
	return apierrors.NewNotFound(resource, name)
}

// NoSuchPath says that nothing is served at a path.
func NoSuchPath() *Error {
	return unrouted(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// NoSuchMethod says that what is served at a path does not answer a method.
func NoSuchMethod() *Error {
	return unrouted(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
}

// NoSuchForm says that what is served at a path has none of the media types that a
// client takes.
func NoSuchForm(produced ...string) *Error {
	return unrouted(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"406: Not Acceptable\n\nAvailable representations: "+strings.Join(produced, ", "))
}

// NoSuchPatch says that what is served at a path takes no patch of the type that a client sends.
func NoSuchPatch() *Error {
	return unrouted(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
}

func unrouted(code int32, reason metav1.StatusReason, message string) *Error {
	return &Error{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Reason:  reason,
		Message: message,
		Details: &metav1.StatusDetails{},
	}}
}

// AlreadyExists says that an object of the name exists.
func AlreadyExists(resource schema.GroupResource, name string) *Error {
	return apierrors.NewAlreadyExists(resource, name)
}

// GeneratedNameTaken says that an object of the name exists, and that another attempt may
// find another name.
func GeneratedNameTaken(resource schema.GroupResource, name string) *Error {
	return apierrors.NewGenerateNameConflict(resource, name, 1)
}

// Conflict says that an object is not what the client thought it was.
func Conflict(resource schema.GroupResource, name string, err error) *Error {
	return apierrors.NewConflict(resource, name, err)
}

// Modified is the Conflict of a stale resourceVersion.
func Modified(resource schema.GroupResource, name string) *Error {
	return Conflict(resource, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// Forbidden says that the user, or the state of things, does not allow it.
func Forbidden(resource schema.GroupResource, name string, err error) *Error {
	return apierrors.NewForbidden(resource, name, err)
}

// Unauthorized says that the server does not know who is asking.
func Unauthorized() *Error { return apierrors.NewUnauthorized("Unauthorized") }

// MethodNotAllowed says that a resource does not answer a verb.
func MethodNotAllowed(resource schema.GroupResource, verb string) *Error {
	return apierrors.NewMethodNotSupported(resource, verb)
}

// NotAcceptable says which media types the client could have asked for.
func NotAcceptable(accepted ...string) *Error {
	return media(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+strings.Join(accepted, ", "))
}

// UnsupportedMediaType says which media types the client could have sent.
func UnsupportedMediaType(supported ...string) *Error {
	return media(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(supported, ", "))
}

func media(code int32, reason metav1.StatusReason, message string) *Error {
	return &Error{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// TooLarge says that the request is larger than the server reads.
func TooLarge(message string) *Error { return apierrors.NewRequestEntityTooLargeError(message) }

// Expired says that the asked state of the store is gone.
func Expired(message string) *Error { return apierrors.NewResourceExpired(message) }

// FutureRevision says that a resourceVersion has not happened yet, and when to come back; 0 for not.
func FutureRevision(asked, newest int64, retryAfterSeconds int) *Error {
	e := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, newest), retryAfterSeconds)
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return e
}

// Timeout says that the server gave up on the request.
func Timeout(message string, retryAfterSeconds int) *Error {
	return apierrors.NewTimeoutError(message, retryAfterSeconds)
}

// Limited says that the client has asked too often. It does not say when to come back.
func Limited(message string) *Error { return apierrors.NewTooManyRequestsError(message) }

// TooManyRequests asks the client to come back later.
func TooManyRequests(message string, retryAfterSeconds int) *Error {
	return apierrors.NewTooManyRequests(message, retryAfterSeconds)
}

// Unavailable says that the server cannot answer at the moment.
func Unavailable(message string) *Error { return apierrors.NewServiceUnavailable(message) }

// Internal says that it is the server's fault.
func Internal(err error) *Error { return apierrors.NewInternalError(err) }

// Of translates any error to the Status the client gets. Errors that are
// not of this package are a 500 in their own words.
func Of(err error) metav1.Status {
	var e apierrors.APIStatus
	switch {
	case errors.As(err, &e):
		s := e.Status()
		if s.Status == "" {
			s.Status = metav1.StatusFailure
		}
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return s
	case errors.Is(err, context.DeadlineExceeded):
		return Of(Timeout("request did not complete within the allotted timeout", 0))
	default:
		return metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure,
			Code:     http.StatusInternalServerError,
			Message:  err.Error(),
		}
	}
}

// Is reports whether err says reason.
func Is(err error, reason metav1.StatusReason) bool { return apierrors.ReasonForError(err) == reason }
