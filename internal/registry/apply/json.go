package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/jsonpatch"
	"github.com/anykind/anykind/internal/object/status"
)

// JSON decodes a JSON patch (RFC 6902). As in Kubernetes, the root supports only replace and test, and
// a negative index counts from the end of an array.
func JSON(data []byte) (*Patch, error) {
	if !json.Valid(data) {
		return nil, status.BadRequest("invalid JSON patch")
	}
	var all []jsonpatch.Operation
	strict, err := kjson.UnmarshalStrict(data, &all)
	var wrong error
	if err != nil {
		// Clients see the name of Kubernetes' type.
		wrong = status.BadRequest("error decoding patch: %s", clientWords.Replace(err.Error()))
		if all, err = loosely(data); err != nil {
			return nil, wrong
		}
	}
	var problems []string
	for _, e := range strict {
		problems = append(problems, "json patch "+e.Error())
	}
	if len(all) > jsonpatch.MaxOperations {
		return nil, status.TooLarge(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", jsonpatch.MaxOperations, len(all)))
	}
	return &Patch{Duplicates: problems, Wrong: wrong, apply: func(old object.Tree) (object.Tree, error) {
		patched, err := jsonpatch.Operations(all).Apply(old)
		switch {
		case errors.Is(err, jsonpatch.ErrCopied):
			return nil, status.TooLarge(fmt.Sprintf("Unable to complete the copy, the accumulated size increase of copy is over the limit of %d bytes", jsonpatch.MaxCopied))
		case err != nil:
			return nil, unprocessable()
		}
		return patched, nil
	}}, nil
}

// clientWords replaces the names of our type by those of Kubernetes'.
var clientWords = strings.NewReplacer("jsonpatch.Operation", "handlers.jsonPatchOp", "struct field Operation.", "struct field jsonPatchOp.")

// loosely decodes a JSON patch with fields that are not strings as they should be. Such a field counts
// as missing, so that only operations that need it fail.
func loosely(data []byte) ([]jsonpatch.Operation, error) {
	var fields []map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &fields); err != nil {
		return nil, err
	}
	var all []jsonpatch.Operation
	for _, f := range fields {
		op := jsonpatch.Operation{Value: f["value"]}
		op.Op, _ = f["op"].(string)
		if path, ok := f["path"].(string); ok {
			op.Path = &path
		}
		if from, ok := f["from"].(string); ok {
			op.From = &from
		}
		all = append(all, op)
	}
	return all, nil
}

// unprocessable returns the short error with which Kubernetes rejects a patch that does not fit the
// object.
func unprocessable() *status.Error {
	return &status.Error{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: "the server rejected our request due to an error in our request",
		Details: &metav1.StatusDetails{},
	}}
}
