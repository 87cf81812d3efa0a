package judge

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// An APIService decodes, as does each other kind that is served in protobuf.
func TestProtobufOfAPIServices(t *testing.T) {
	service := &apiregistration.APIService{}
	service.Name = "v1.example.com"
	raw, err := service.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"}, Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body, _ := tree("application/vnd.kubernetes.protobuf", append([]byte("k8s\x00"), data...)).(map[string]any)
	object, _ := body["message"].(map[string]any)
	if metadata, _ := object["metadata"].(map[string]any); metadata["name"] != service.Name {
		t.Errorf("%v", body)
	}
}
