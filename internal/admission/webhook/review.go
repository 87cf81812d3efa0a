package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

const reviewGroup, reviewKind = "admission.k8s.io", "AdmissionReview"

// versionOf returns the version of AdmissionReview for a webhook: the first of its versions that
// this server knows.
func (h *hook) versionOf() (string, error) {
	for _, v := range h.versions {
		if v == "v1" || v == "v1beta1" {
			return v, nil
		}
	}
	return "", fmt.Errorf("webhook does not accept known AdmissionReview versions (v1, v1beta1)")
}

// review encodes the AdmissionReview of a write. All versions have the same fields.
func review(version, uid string, w *match.Write, v *match.View, dryRun bool) ([]byte, error) {
	user, err := userTree(w.User)
	if err != nil {
		return nil, err
	}
	options, err := optionsTree(w.Options())
	if err != nil {
		return nil, err
	}
	asked := match.RequestForm(w.Admission)
	t := object.Tree{
		"uid":             uid,
		"kind":            kindTree(v.Kind),
		"resource":        resourceTree(v.Resource),
		"requestKind":     kindTree(asked.Kind),
		"requestResource": resourceTree(asked.Resource),
		"operation":       string(w.Operation),
		"userInfo":        user,
		"object":          orNull(v.Object),
		"oldObject":       orNull(v.Old),
		"dryRun":          dryRun,
		"options":         orNull(options),
	}
	for field, text := range map[string]string{
		"subResource": w.Target.Subresource, "requestSubResource": w.Target.Subresource, "name": w.Target.Name, "namespace": w.InNamespace(),
	} {
		if text != "" {
			t[field] = text
		}
	}
	return object.AppendJSON(nil, object.Tree{"apiVersion": reviewGroup + "/" + version, "kind": reviewKind, "request": t}), nil
}

func orNull(t object.Tree) any {
	if t == nil {
		return nil
	}
	return t
}

func kindTree(k schema.GroupVersionKind) object.Tree {
	return object.Tree{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func resourceTree(r schema.GroupVersionResource) object.Tree {
	return object.Tree{"group": r.Group, "version": r.Version, "resource": r.Resource}
}

func userTree(u *request.User) (object.Tree, error) {
	if u == nil {
		return object.Tree{}, nil
	}
	info := u.Info()
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&info)
}

func optionsTree(o runtime.Object) (object.Tree, error) {
	if o == nil {
		return nil, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// An answer is the response of a webhook.
type answer struct {
	*admissionv1.AdmissionResponse
	patchType admissionv1.PatchType
}

// decodeAnswer decodes the response to a review of a version.
func decodeAnswer(version string, data []byte) (*admissionv1.AdmissionReview, error) {
	var is struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	got := schema.FromAPIVersionAndKind(is.APIVersion, is.Kind)
	known := (got.Kind == "" || got.Kind == reviewKind) && (is.APIVersion == "" || got.Group == reviewGroup && (got.Version == "v1" || got.Version == "v1beta1"))
	switch {
	case !known:
		return nil, fmt.Errorf("the answer is %.200q, not %q", got.String(), schema.GroupVersionKind{Group: reviewGroup, Version: version, Kind: reviewKind}.String())
	case got.Version != "" && got.Version != version:
		return nil, fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", got.Version, reviewKind, version, reviewKind)
	}
	reply := &admissionv1.AdmissionReview{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, reply); err != nil {
		return nil, err
	}
	return reply, nil
}

// accept validates a response and returns its answer. v1beta1 has fewer required fields.
func accept(version, uid string, mutating bool, reply *admissionv1.AdmissionReview) (*answer, error) {
	r := reply.Response
	if r == nil {
		return nil, fmt.Errorf("webhook response was absent")
	}
	a := &answer{AdmissionResponse: r}
	if r.PatchType != nil {
		a.patchType = *r.PatchType
	}
	if version == "v1beta1" {
		if a.patchType = ""; len(r.Patch) > 0 {
			a.patchType = admissionv1.PatchTypeJSONPatch
		}
		return a, nil
	}
	asked := schema.GroupVersionKind{Group: reviewGroup, Version: version, Kind: reviewKind}
	switch {
	case string(r.UID) != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %.100q", uid, r.UID)
	case reply.GroupVersionKind() != asked:
		return nil, fmt.Errorf("expected webhook response of %v, got %v", asked.String(), reply.GroupVersionKind().String())
	case !mutating && len(r.Patch) > 0:
		return nil, fmt.Errorf("validating webhook may not return response.patch")
	case !mutating && r.PatchType != nil:
		return nil, fmt.Errorf("validating webhook may not return response.patchType")
	case len(r.Patch) > 0 && r.PatchType == nil:
		return nil, fmt.Errorf("webhook returned response.patch but not response.patchType")
	case len(r.Patch) == 0 && r.PatchType != nil:
		return nil, fmt.Errorf("webhook returned response.patchType but not response.patch")
	case r.PatchType != nil && *r.PatchType == "":
		return nil, fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	}
	return a, nil
}

// denied returns the error for the client when a webhook rejects a write.
func denied(name string, result *metav1.Status) *status.Error {
	s := metav1.Status{}
	if result != nil {
		s = *result
	}
	s.Code = max(s.Code, http.StatusBadRequest)
	if s.Status == "" || s.Status == metav1.StatusSuccess {
		s.Status = metav1.StatusFailure
	}
	by := fmt.Sprintf("admission webhook %q denied the request", name)
	switch {
	case s.Message != "":
		s.Message = by + ": " + s.Message
	case s.Reason != "":
		s.Message = by + ": " + string(s.Reason)
	default:
		s.Message = by + " without explanation"
	}
	return &status.Error{ErrStatus: s}
}
