package model_test

import (
	"encoding/json"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"

	"github.com/anykind/anykind/internal/schema/model"
)

// The errors of decoding have the names of the published types: of structs, of keys and of elements.
func TestRenamedError(t *testing.T) {
	renamed := model.Renamed{From: "k8s.io/api/resource/v1", To: "k8s.io/api/resource/v1beta2"}
	for _, object := range []string{
		`{"spec":"x"}`,
		`{"spec":{"devices":"x"}}`,
		`{"spec":{"devices":{"requests":"x"}}}`,
		`{"spec":{"devices":{"requests":[{"exactly":"x"}]}}}`,
		`{"spec":{"devices":{"requests":[{"exactly":{"capacity":{"requests":"x"}}}]}}}`,
		`{"spec":{"devices":{"requests":[{"exactly":{"count":"x"}}]}}}`,
		`{"metadata":"x"}`,
		`{"status":{"allocation":{"devices":{"results":[{"consumedCapacity":"x"}]}}}}`,
		`{"status":{"allocation":{"devices":{"config":["x"]}}}}`,
	} {
		ours := json.Unmarshal([]byte(object), &resourcev1.ResourceClaim{})
		want := json.Unmarshal([]byte(object), &resourcev1beta2.ResourceClaim{})
		if ours == nil || want == nil {
			t.Fatalf("%s: accepted", object)
		}
		if got := renamed.Error(ours); got.Error() != want.Error() {
			t.Errorf("%s:\ngot  %v\nwant %v", object, got, want)
		}
	}
}
