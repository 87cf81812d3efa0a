package webhook

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Responses are validated by version of AdmissionReview and type of webhook.
func TestAnswers(t *testing.T) {
	const v1, v1beta1, validating, mutating = "v1", "v1beta1", false, true
	review := func(version, response string) string {
		return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/%s","kind":"AdmissionReview","response":{%s}}`, version, response)
	}
	const patch = `"patch":"W10=","patchType":"JSONPatch"` // no operations
	tests := []struct {
		name     string
		version  string // of the request
		mutating bool
		reply    string
		want     string // the error, empty for a valid response
	}{
		{"yes", v1, validating, review(v1, `"uid":"u","allowed":true`), ""},
		{"a patch", v1, mutating, review(v1, `"uid":"u","allowed":true,`+patch), ""},
		{"no uid", v1, validating, review(v1, `"allowed":true`), `expected response.uid="u", got ""`},
		{"another uid", v1, validating, review(v1, `"uid":"w","allowed":true`), `expected response.uid="u", got "w"`},
		{"a patch of a validating webhook", v1, validating, review(v1, `"uid":"u",`+patch), "validating webhook may not return response.patch"},
		{"a type of patches of a validating webhook", v1, validating, review(v1, `"uid":"u","patchType":"JSONPatch"`), "validating webhook may not return response.patchType"},
		{"a patch without a type", v1, mutating, review(v1, `"uid":"u","patch":"W10="`), "webhook returned response.patch but not response.patchType"},
		{"a type without a patch", v1, mutating, review(v1, `"uid":"u","patchType":"JSONPatch"`), "webhook returned response.patchType but not response.patch"},
		{"an empty type", v1, mutating, review(v1, `"uid":"u","patch":"W10=","patchType":""`), `webhook returned invalid response.patchType of ""`},
		{"no version and kind", v1, validating, `{"response":{"uid":"u","allowed":true}}`, "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="},
		{"no response", v1, validating, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "webhook response was absent"},
		{"another version", v1, validating, review(v1beta1, `"uid":"u"`), "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"},
		{"another kind", v1, validating, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, `the answer is "apiextensions.k8s.io/v1, Kind=ConversionReview", not "admission.k8s.io/v1, Kind=AdmissionReview"`},
		{"text", v1, validating, `yes`, "couldn't get version/kind; json parse error: invalid character 'y' looking for beginning of value"},
		{"a field of another type", v1, validating, review(v1, `"uid":4`), "json: cannot unmarshal number into Go struct field AdmissionResponse.response.uid of type types.UID"},
		// v1beta1 has fewer rules.
		{"v1beta1 without a uid", v1beta1, validating, review(v1beta1, `"allowed":true`), ""},
		{"v1beta1 without version and kind", v1beta1, validating, `{"response":{"allowed":true}}`, ""},
		{"v1beta1 with a patch without a type", v1beta1, mutating, review(v1beta1, `"patch":"W10="`), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reply, err := decodeAnswer(test.version, []byte(test.reply))
			if err == nil {
				_, err = accept(test.version, "u", test.mutating, reply)
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
}

// A rejection is always an error for the client, with the message of the webhook if it has one.
func TestDenied(t *testing.T) {
	const by = `admission webhook "w.example.com" denied the request`
	tests := []struct {
		name   string
		result *metav1.Status
		code   int32
		want   string
	}{
		{"nothing is said", nil, 400, by + " without explanation"},
		{"a message", &metav1.Status{Message: "no", Reason: "Unused"}, 400, by + ": no"},
		{"a reason", &metav1.Status{Reason: "Because"}, 400, by + ": Because"},
		{"a code", &metav1.Status{Code: 409}, 409, by + " without explanation"},
		{"a code that is no error", &metav1.Status{Status: "Success", Code: 200, Message: "fine"}, 400, by + ": fine"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := denied("w.example.com", test.result).ErrStatus
			if s.Code != test.code || s.Message != test.want || s.Status != metav1.StatusFailure {
				t.Errorf("%d %s %s, want %d %s", s.Code, s.Status, s.Message, test.code, test.want)
			}
		})
	}
}

// The first known version is used.
func TestVersionOf(t *testing.T) {
	for versions, want := range map[string]string{"v1": "v1", "v1beta1,v1": "v1beta1", "v9,v1": "v1", "v9": "", "": ""} {
		h := &hook{versions: strings.Split(versions, ",")}
		if got, err := h.versionOf(); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", versions, got, err, want)
		}
	}
}
