package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A corruptError is the error of the read of a stored object that cannot be decrypted or decoded. With the feature
// gate AllowUnsafeMalformedObjectDeletion it names the object, for a client that wants to delete it.
type corruptError struct {
	key      string
	revision int64
	sealed   bool // the value cannot be decrypted
	named    bool
	err      error
}

// corrupt returns the error of an object whose value cannot be decoded. A value that cannot be decrypted has a more specific
// error than err.
func (r *Registry) corrupt(ctx context.Context, o *watchcache.Object, err error) error {
	e := &corruptError{key: o.Key, revision: o.Revision, named: r.gates.On(gate.AllowUnsafeMalformedObjectDeletion), err: err}
	if r.former == nil {
		return e
	}
	_, reason := r.former.Outdated(ctx, o.Key)
	if reason == nil || errors.Is(reason, kv.ErrNotFound) {
		return e
	}
	if known := (*status.Error)(nil); errors.As(StorageError(reason), &known) {
		return known // the store did not answer
	}
	e.sealed, e.err = true, reason
	return e
}

func isCorrupt(err error) bool {
	e := (*corruptError)(nil)
	return errors.As(err, &e)
}

func (e *corruptError) Unwrap() error { return e.err }

func (e *corruptError) Error() string { return e.Status().Message }

// Status returns the error as the answer to a request for this object.
func (e *corruptError) Status() metav1.Status {
	switch {
	case e.named: // Kubernetes omits the prefix here
		return status.Internal(errors.New(e.describe("/" + strings.TrimPrefix(e.key, resource.Root)))).ErrStatus
	case e.sealed:
		return status.Internal(e.err).ErrStatus
	}
	return status.Internal(fmt.Errorf("the stored object %s cannot be decoded: %w", e.key, e.err)).ErrStatus
}

func (e *corruptError) describe(key string) string {
	reason := fmt.Sprintf("object not decodable revision=%d: %v", e.revision, e.err)
	if e.sealed {
		reason = fmt.Sprintf("data from the storage is not transformable revision=0: %v", e.err)
	}
	return fmt.Sprintf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %s", key, reason)
}

// maxCorrupt limits the corrupt objects that the answer to a list names.
const maxCorrupt = 100

// corruptErrors are those of the objects of a list.
type corruptErrors struct {
	all       []*corruptError
	truncated bool
}

// add adds the error of an object, and reports whether the list looks for more of them.
func (c *corruptErrors) add(err error) bool {
	e := (*corruptError)(nil)
	if !errors.As(err, &e) {
		return false
	}
	c.all = append(c.all, e)
	c.truncated = len(c.all) == maxCorrupt
	return e.named && !c.truncated
}

// of returns the error of a list. The list ended with err; nil for its regular end.
func (c *corruptErrors) of(resource schema.GroupResource, err error) error {
	switch {
	case len(c.all) == 0:
		return err
	case !c.all[0].named && c.all[0].sealed:
		return status.Internal(fmt.Errorf("unable to transform key %q: %w", c.all[0].key, c.all[0].err))
	case !c.all[0].named:
		return c.all[0]
	}
	details := &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource, Name: "list"}
	cause := func(t metav1.CauseType, field, message string) {
		details.Causes = append(details.Causes, metav1.StatusCause{Type: t, Field: field, Message: message})
	}
	for _, e := range c.all {
		cause(metav1.CauseTypeUnexpectedServerResponse, e.key, e.describe(e.key))
	}
	switch {
	case c.truncated:
		cause(metav1.CauseTypeTooMany, "", "too many errors, the list is truncated")
	case err != nil && !isCorrupt(err):
		cause(metav1.CauseTypeUnexpectedServerResponse, "", err.Error())
	}
	message := fmt.Sprintf("failed to read one or more %s from the storage: %s", resource, details.Causes[0].Message)
	if others := len(c.all) - 1; others > 0 {
		message += fmt.Sprintf(" (and %d more)", others)
	}
	return &status.Error{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: message, Details: details,
	}}
}
