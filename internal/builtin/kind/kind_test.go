package kind_test

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

// Each version of a kind has its own schema, marks and decoding steps.
func TestVersions(t *testing.T) {
	d := kind.New(resource.Definition{
		Group: "autoscaling", Plural: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler", Kind: "HorizontalPodAutoscaler", Namespaced: true,
	}, kind.VersionOf[*autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscalerList](&resource.Version{Name: "v2"}).WhenDecoded(func(obj map[string]any) {
		kind.SetMissing(kind.Child(obj, "spec"), "minReplicas", int64(1))
	}), kind.VersionOf[*autoscalingv1.HorizontalPodAutoscaler, *autoscalingv1.HorizontalPodAutoscalerList](&resource.Version{Name: "v1", Storage: true}))

	if v := d.StorageVersion(); v.Name != "v1" || len(d.Versions) != 2 || d.ListKind != "HorizontalPodAutoscalerList" || d.StoragePrefix != "/registry/horizontalpodautoscalers/" {
		t.Errorf("got %+v", d)
	}
	for version, want := range map[string]struct {
		unknown int
		min     any
	}{"v2": {0, int64(1)}, "v1": {1, nil}} {
		v := d.Version(version)
		obj, unknown, err := v.Schema.Complete(map[string]any{
			"apiVersion": "autoscaling/" + version, "kind": d.Kind, "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"metrics": []any{}, "maxReplicas": int64(2), "scaleTargetRef": map[string]any{"kind": "Deployment", "name": "d"}},
		})
		if err != nil || len(unknown) != want.unknown || kind.Value(obj, "spec", "minReplicas") != want.min {
			t.Errorf("%s: %v, unknown %q, %v", version, obj, unknown, err)
		}
		if m := v.Schema.Model(); m.Name != "io.k8s.api.autoscaling."+version+".HorizontalPodAutoscaler" || v.New() == nil || !v.Served {
			t.Errorf("%s is %s", version, m.Name)
		}
		// The fingerprint detects changes of the published schema without building it.
		if want := "k8s.io/api/autoscaling/" + version + ".HorizontalPodAutoscaler"; v.Fingerprint != want {
			t.Errorf("%s has the fingerprint %q, want %q", version, v.Fingerprint, want)
		}
	}
	metrics := d.Version("v2").Schema.Model().Schemas["io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec"].Properties["metrics"]
	if got := metrics.Extensions["x-kubernetes-list-type"]; got != "atomic" {
		t.Errorf("metrics are %v", got)
	}
}
