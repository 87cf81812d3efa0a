package conversion

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// maxReview limits a ConversionReview. kube-apiserver sends the objects of a whole list in one.
const maxReview = 256 << 20

// A Webhook answers ConversionReviews.
type Webhook struct {
	// Definitions returns the present definitions.
	Definitions func() *Definitions
}

type review struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Request    *request `json:"request,omitempty"`
}

type request struct {
	UID               string        `json:"uid"`
	DesiredAPIVersion string        `json:"desiredAPIVersion"`
	Objects           []object.Tree `json:"objects"`
}

// ServeHTTP answers a ConversionReview of v1 or v1beta1.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST a ConversionReview", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	var in review
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &in); err != nil {
		http.Error(w, "the request is no ConversionReview: "+err.Error(), http.StatusBadRequest)
		return
	}
	version, ok := strings.CutPrefix(in.APIVersion, "apiextensions.k8s.io/")
	if in.Kind != "ConversionReview" || !ok || version != "v1" && version != "v1beta1" || in.Request == nil {
		http.Error(w, fmt.Sprintf("%s %s is no ConversionReview of apiextensions.k8s.io/v1", in.APIVersion, in.Kind), http.StatusBadRequest)
		return
	}
	objects, err := h.convert(r.Context(), in.Request)
	result := object.Tree{"status": "Success"}
	response := object.Tree{"uid": in.Request.UID, "result": result}
	if err != nil {
		result["status"], result["message"] = "Failure", err.Error()
	} else {
		response["convertedObjects"] = objects
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(object.AppendJSON(nil, object.Tree{"apiVersion": in.APIVersion, "kind": in.Kind, "response": response}))
}

// convert converts all objects, or none.
func (h *Webhook) convert(ctx context.Context, r *request) ([]any, error) {
	definitions := h.Definitions()
	want, err := schema.ParseGroupVersion(r.DesiredAPIVersion)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, t := range r.Objects {
		if gv, err := schema.ParseGroupVersion(object.APIVersion(t)); err != nil || gv.Group != want.Group {
			return nil, fmt.Errorf("%s is not a version of %s", r.DesiredAPIVersion, object.APIVersion(t))
		}
		converted, err := definitions.Convert(ctx, t, want.Version)
		if err != nil {
			return nil, err
		}
		out = append(out, converted)
	}
	return out, nil
}

// Patch returns a merge patch that makes a definition use the webhook at a URL.
func Patch(url string, ca []byte) string {
	client := object.Tree{"url": url}
	if ca != nil {
		client["caBundle"] = base64.StdEncoding.EncodeToString(ca)
	}
	return string(object.AppendJSON(nil, object.Tree{"spec": object.Tree{"conversion": object.Tree{
		"strategy": "Webhook", "webhook": object.Tree{"conversionReviewVersions": []any{"v1"}, "clientConfig": client},
	}}}))
}
