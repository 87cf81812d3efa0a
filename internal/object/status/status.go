// Package status has the closed set of errors that clients see.
//
// All packages that work on API objects return these errors. Only Of converts an error to a
// Status. The messages come from Kubernetes' error constructors; the functions here are the
// complete list of errors of anykind.
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

// BadRequest reports a malformed request.
func BadRequest(format string, args ...any) *Error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// Invalid reports invalid fields of an object. Duplicates are dropped: several validations often
// find the same error.
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

// Join joins distinct errors. The result equals that of apimachinery's aggregates, which take
// quadratic time: an object can have as many errors as its request has room for.
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

// distinct drops duplicate errors.
func distinct(errs field.ErrorList) field.ErrorList {
	seen := make(map[string]bool, len(errs))
	out := make(field.ErrorList, 0, len(errs))
	for _, err := range errs {
		if message := err.Error(); !seen[message] {
			seen[message] = true
			out = append(out, err)
		}
	}
	return out
}

// NotFound reports a missing object.
func NotFound(resource schema.GroupResource, name string) *Error {
	return apierrors.NewNotFound(resource, name)
}

// NoSuchPath reports an unknown path.
func NoSuchPath() *Error {
	return unrouted(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// NoSuchMethod reports an unsupported method for a path.
func NoSuchMethod() *Error {
	return unrouted(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
}

// NoSuchForm reports that a path has none of the media types that the client accepts.
func NoSuchForm(produced ...string) *Error {
	return unrouted(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"406: Not Acceptable\n\nAvailable representations: "+strings.Join(produced, ", "))
}

// NoSuchPatch reports an unsupported type of patch for a path.
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

// AlreadyExists reports an existing object.
func AlreadyExists(resource schema.GroupResource, name string) *Error {
	return apierrors.NewAlreadyExists(resource, name)
}

// GeneratedNameTaken reports an existing object for a generated name, and suggests a retry.
func GeneratedNameTaken(resource schema.GroupResource, name string) *Error {
	return apierrors.NewGenerateNameConflict(resource, name, 1)
}

// Conflict reports that an object is in another state than the client expects.
func Conflict(resource schema.GroupResource, name string, err error) *Error {
	return apierrors.NewConflict(resource, name, err)
}

// Modified is the Conflict for a stale resourceVersion.
func Modified(resource schema.GroupResource, name string) *Error {
	return Conflict(resource, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// Forbidden reports that the user's rights or a policy do not allow the request.
func Forbidden(resource schema.GroupResource, name string, err error) *Error {
	return apierrors.NewForbidden(resource, name, err)
}

// Unauthorized reports a failed authentication.
func Unauthorized() *Error { return apierrors.NewUnauthorized("Unauthorized") }

// MethodNotAllowed reports an unsupported verb for a resource.
func MethodNotAllowed(resource schema.GroupResource, verb string) *Error {
	return apierrors.NewMethodNotSupported(resource, verb)
}

// NotAcceptable lists the media types that the client could accept.
func NotAcceptable(accepted ...string) *Error {
	return media(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+strings.Join(accepted, ", "))
}

// UnsupportedMediaType lists the media types that the client could send.
func UnsupportedMediaType(supported ...string) *Error {
	return media(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(supported, ", "))
}

func media(code int32, reason metav1.StatusReason, message string) *Error {
	return &Error{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// TooLarge reports that the request exceeds a limit.
func TooLarge(message string) *Error { return apierrors.NewRequestEntityTooLargeError(message) }

// Expired reports that the requested revision was compacted.
func Expired(message string) *Error { return apierrors.NewResourceExpired(message) }

// FutureRevision reports a resourceVersion that does not exist yet. retryAfterSeconds suggests a
// retry, unless it is 0.
func FutureRevision(asked, newest int64, retryAfterSeconds int) *Error {
	e := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, newest), retryAfterSeconds)
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return e
}

// Timeout reports that the request took too long.
func Timeout(message string, retryAfterSeconds int) *Error {
	return apierrors.NewTimeoutError(message, retryAfterSeconds)
}

// Limited reports too many requests, without suggesting a retry.
func Limited(message string) *Error { return apierrors.NewTooManyRequestsError(message) }

// TooManyRequests reports too many requests, and suggests a retry.
func TooManyRequests(message string, retryAfterSeconds int) *Error {
	return apierrors.NewTooManyRequests(message, retryAfterSeconds)
}

// Unavailable reports that the server is temporarily unavailable.
func Unavailable(message string) *Error { return apierrors.NewServiceUnavailable(message) }

// Internal reports an internal error.
func Internal(err error) *Error { return apierrors.NewInternalError(err) }

// Of converts any error to a Status. Errors of other packages become a 500 with their message.
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

// An Undecodable is the error for an object that does not decode as the expected kind. Kind is the kind
// that the object claims.
type Undecodable struct {
	Kind     schema.GroupVersionKind
	Expected string
	Err      error
}

func (e *Undecodable) Error() string {
	return fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", e.Kind.Kind, e.Kind.Version, e.Expected, e.Err)
}

// Status returns the error as a BadRequest.
func (e *Undecodable) Status() metav1.Status { return BadRequest("%s", e.Error()).ErrStatus }

// As converts the error to an Error for errors.As.
func (e *Undecodable) As(target any) bool {
	t, ok := target.(**Error)
	if ok {
		*t = BadRequest("%s", e.Error())
	}
	return ok
}

// Cause returns the reason why an object did not decode, or err if it is another error.
func Cause(err error) error {
	if e := (*Undecodable)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Is reports whether the reason of err is reason.
func Is(err error, reason metav1.StatusReason) bool { return apierrors.ReasonForError(err) == reason }
