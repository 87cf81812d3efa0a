package builtin

import (
	"encoding/json"
	"regexp"
	"testing"

	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/protobuf"
)

// stored returns a ConfigMap in the form in which a kube-apiserver stores it.
func stored(t *testing.T) []byte {
	t.Helper()
	raw, err := (&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", Labels: map[string]string{"a": "b"}},
		Data:       map[string]string{"k": "v"},
	}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	data, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

func TestStoredProtobufIsReadAsJSON(t *testing.T) {
	data := StoredJSON(Definitions(), "/registry/configmaps/ns/c", stored(t))
	e, err := object.Scan(data, 7)
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if e.Name != "c" || e.Namespace != "ns" || e.APIVersion() != "v1" || e.Labels.Get("a") != "b" {
		t.Errorf("got %s", data)
	}
}

func TestStoredCBORIsReadAsJSON(t *testing.T) {
	data, err := direct.Marshal(map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "count": int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	got := StoredJSON(nil, "/registry/example.com/things/t", append([]byte{0xd9, 0xd9, 0xf7}, data...))
	if want := `{"apiVersion":"example.com/v1","count":1,"kind":"Thing"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOtherStoredValuesStayAsTheyAre(t *testing.T) {
	kinds := Definitions()
	for key, value := range map[string]string{
		"/registry/configmaps/ns/json":   `{"apiVersion":"v1"}`,
		"/registry/configmaps/ns/broken": "k8s\x00\xff",
		"/registry/secrets/ns/other":     string(stored(t)),
		"/registry/pods/ns/p":            string(stored(t)),
		"/registry/e.com/things/torn":    "\xd9\xd9\xf7\xa1",
	} {
		if got := StoredJSON(kinds, key, []byte(value)); string(got) != value {
			t.Errorf("%s: got %q, want %q", key, got, value)
		}
	}
}

// Objects in etcd may be in versions that were removed since they were stored.
func TestFormerVersionsAreReadAsStoredToday(t *testing.T) {
	envelope := func(obj runtime.Object) string {
		raw, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		data, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return "k8s\x00" + string(data)
	}
	typed := func(apiVersion, kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
	}
	named := metav1.ObjectMeta{Name: "n"}
	for _, c := range []struct{ key, stored, has string }{
		{
			"/registry/poddisruptionbudgets/ns/n",
			envelope(&policyv1beta1.PodDisruptionBudget{
				TypeMeta: typed("policy/v1beta1", "PodDisruptionBudget"), ObjectMeta: named,
				Spec: policyv1beta1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}, // of no pod
			}),
			`"apiVersion":"policy/v1",.*"selector":{"matchExpressions":\[{"key":"pdb[^}]*","operator":"Exists"}\]}`,
		},
		{
			"/registry/ingress/ns/n",
			`{"kind":"Ingress","apiVersion":"extensions/v1beta1","metadata":{"name":"n"},"spec":{"backend":{"serviceName":"s","servicePort":80}}}`,
			`"apiVersion":"networking.k8s.io/v1",.*"defaultBackend":{"service":{"name":"s","port":{"number":80}}}`,
		},
		{
			"/registry/cronjobs/ns/n",
			envelope(&batchv1beta1.CronJob{
				TypeMeta: typed("batch/v1beta1", "CronJob"), ObjectMeta: named, Spec: batchv1beta1.CronJobSpec{Schedule: "@daily"},
			}),
			`"apiVersion":"batch/v1",.*"schedule":"@daily"`,
		},
	} {
		got := StoredJSON(Stored(nil), c.key, []byte(c.stored))
		if e, err := object.Scan(got, 7); err != nil || e.Name != "n" || !regexp.MustCompile(c.has).Match(got) {
			t.Errorf("%s: got %q, want %s", c.key, got, c.has)
		}
	}
}

// BenchmarkStored measures the conversion of a Pod to and from protobuf.
func BenchmarkStored(b *testing.B) {
	const key = "/registry/pods/default/p"
	pod, err := json.Marshal(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u", Labels: map[string]string{"app": "a", "tier": "b"}, CreationTimestamp: metav1.Unix(1, 0)},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Image: "registry.example.com/image:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
				Ports:        []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
				Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}},
				VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
			}},
			NodeName: "node-1", ServiceAccountName: "default", Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Image: "registry.example.com/image:1", Ready: true}},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	kinds, types := Stored(nil), &protobuf.Types{}
	message, ok := StoredProtobuf(types, kinds, key, pod)
	if !ok {
		b.Fatal("no protobuf")
	}
	b.Logf("%d bytes of JSON, %d of protobuf", len(pod), len(message))
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			StoredProtobuf(types, kinds, key, pod)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			StoredJSON(kinds, key, message)
		}
	})
}
