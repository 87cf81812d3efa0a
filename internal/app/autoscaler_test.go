package app

import (
	"net/http"
	"strings"
	"testing"
)

// An autoscaler that was created in v1 has the defaults of v2. kube-apiserver sets them when it reads the object from etcd.
func TestAutoscalerOfV1HasDefaultsOfV2(t *testing.T) {
	a := start(t, Options{InMemory: true})
	defer stop(t, a)
	const at = "/apis/autoscaling/%s/namespaces/default/horizontalpodautoscalers"
	path := func(version string) string { return strings.Replace(at, "%s", version, 1) }
	asked(t, a, http.MethodPost, path("v1"), `{"metadata":{"name":"a","annotations":{
		"autoscaling.alpha.kubernetes.io/behavior":"{\"ScaleUp\":{\"SelectPolicy\":\"Max\",\"Policies\":[{\"Type\":\"Pods\",\"Value\":4,\"PeriodSeconds\":15}]}}"}},
		"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"maxReplicas":3}}`, http.StatusCreated)
	for version, want := range map[string]string{
		"v1": `\"ScaleDown\":{\"StabilizationWindowSeconds\":null,\"SelectPolicy\":\"Max\",\"Policies\":[{\"Type\":\"Percent\",\"Value\":100,\"PeriodSeconds\":15}]`,
		"v2": `"scaleDown":{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"}`,
	} {
		if got := asked(t, a, http.MethodGet, path(version)+"/a", "", http.StatusOK); !strings.Contains(got, want) {
			t.Errorf("%s: %s", version, got)
		}
		if got := asked(t, a, http.MethodGet, path(version), "", http.StatusOK); !strings.Contains(got, want) {
			t.Errorf("list in %s: %s", version, got)
		}
	}
}
