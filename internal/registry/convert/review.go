package convert

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	kjson "sigs.k8s.io/json"
)

const reviewGroup = "apiextensions.k8s.io"

// A review is one ConversionReview.
type review struct {
	version string
	uid     string
	body    []byte
}

// newReview encodes a request in the first of the webhook's versions that the server supports.
func newReview(versions []string, desired string, objects [][]byte) (*review, error) {
	r := &review{uid: string(uuid.NewUUID())}
	for _, v := range versions {
		if v == "v1" || v == "v1beta1" {
			r.version = v
			break
		}
	}
	if r.version == "" {
		return nil, errors.New("no supported conversion review versions")
	}
	size := 512
	for _, o := range objects {
		size += len(o) + 1
	}
	b := make([]byte, 0, size)
	b = append(b, `{"kind":"ConversionReview","apiVersion":"`+reviewGroup+`/`+r.version+`","request":{"uid":"`+r.uid+`","desiredAPIVersion":"`+desired+`","objects":[`...)
	for i, o := range objects {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, o...)
	}
	// Some webhooks fill in the response of the request.
	r.body = append(b, `]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`...)
	return r, nil
}

// A refusal is the failure of a whole review, reported by the webhook.
type refusal struct{ message string }

func (e *refusal) Error() string { return e.message }

// read returns the converted objects of a response.
func (r *review) read(data []byte) ([]json.RawMessage, error) {
	var answer struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Response   *struct {
			UID              string            `json:"uid"`
			ConvertedObjects []json.RawMessage `json:"convertedObjects"`
			Result           struct {
				Status  string `json:"status"`
				Message string `json:"message"`
			} `json:"result"`
		} `json:"response"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &answer); err != nil {
		return nil, fmt.Errorf("the response is not a ConversionReview: %w", err)
	}
	if r.version == "v1" {
		want := schema.GroupVersionKind{Group: reviewGroup, Version: "v1", Kind: "ConversionReview"}
		if got := schema.FromAPIVersionAndKind(answer.APIVersion, answer.Kind); got != want {
			return nil, fmt.Errorf("expected webhook response of %v, got %v", want, got)
		}
	}
	response := answer.Response
	if response == nil {
		return nil, errors.New("no response provided")
	}
	// Webhooks of v1beta1 may omit the uid.
	if response.UID != r.uid && (r.version == "v1" || response.UID != "") {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", r.uid, response.UID)
	}
	if result := &response.Result; result.Status != metav1.StatusSuccess {
		if result.Message != "" {
			return nil, &refusal{result.Message}
		}
		return nil, &refusal{fmt.Sprintf("response.result.status was '%s', not 'Success'", result.Status)}
	}
	return response.ConvertedObjects, nil
}
