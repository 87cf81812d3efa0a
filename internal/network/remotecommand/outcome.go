package remotecommand

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"

	"github.com/anykind/anykind/internal/object/status"
)

// An exitError reports a command that ended with a code other than 0.
type exitError struct{ code uint64 }

func (e *exitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.code)
}

// decode returns the error in the text of the error stream. Old protocols have a message instead of a Status.
func decode(version string, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if !slices.Contains(versions[:2], version) {
		return fmt.Errorf("error executing remote command: %s", text)
	}
	const wrong = "error stream protocol error: "
	var s metav1.Status
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf(wrong+"%w in %q", err, text)
	}
	switch {
	case s.Status == metav1.StatusSuccess:
		return nil
	case s.Status != metav1.StatusFailure:
		return errors.New(wrong + "unknown error")
	case s.Reason != remotecommand.NonZeroExitCodeReason:
		return errors.New(s.Message)
	case s.Details == nil:
		return errors.New(wrong + "details must be set")
	}
	for _, cause := range s.Details.Causes {
		if cause.Type == remotecommand.ExitCodeCauseType {
			code, err := strconv.ParseUint(cause.Message, 10, 8)
			if err != nil {
				return fmt.Errorf(wrong+"invalid exit code value %q", cause.Message)
			}
			return &exitError{code}
		}
	}
	return fmt.Errorf(wrong+"no %s cause given", remotecommand.ExitCodeCauseType)
}

// outcome returns the last message to a client, and the code for the metric. A command that fails is no error of the
// connection.
func outcome(err error) ([]byte, int) {
	s, code := metav1.Status{Status: metav1.StatusSuccess}, http.StatusOK
	var exit *exitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		s = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: fmt.Sprint("command terminated with non-zero exit code: ", err),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: fmt.Sprint(exit.code)}}},
		}
	default:
		s, code = status.Internal(err).Status(), http.StatusInternalServerError
	}
	text, _ := json.Marshal(s) // a Status has only fields that JSON knows
	return text, code
}
