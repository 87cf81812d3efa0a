package limitranger_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/limitranger"
	"github.com/anykind/anykind/internal/store/stored"
)

func world(t *testing.T, limits string) *admissiontest.World {
	w := admissiontest.New(t, func(w *admissiontest.World) []any {
		return []any{&limitranger.Plugin{Limits: stored.List[corev1.LimitRange](w.Cache, w.Kinds, corev1.Resource("limitranges"))}}
	})
	w.Have("{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [" + limits + "]}}")
	return w
}

func pod(spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {" + spec + "}}"
}

// Containers without requests get the defaults, and the pod an annotation.
func TestDefaults(t *testing.T) {
	const limits = `{type: Container, default: {cpu: "1", memory: 1Gi}, defaultRequest: {cpu: 0.5}}`
	tests := []struct{ name, spec, containers, annotation string }{
		{"nothing is said", `containers: [{name: c, image: i}]`, `{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m","memory":"1Gi"}}`,
			`LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c`},
		{"a limit is said", `containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}]`, `{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"2","memory":"1Gi"}}`,
			`LimitRanger plugin set: memory request for container c; memory limit for container c`},
		{"all is said", `containers: [{name: c, image: i, resources: {limits: {cpu: 2, memory: 1Mi}}}]`, `{"limits":{"cpu":"2","memory":"1Mi"},"requests":{"cpu":"2","memory":"1Mi"}}`, ``},
		{"of a container before it", `containers: [{name: c, image: i, resources: {limits: {cpu: 2, memory: 1Mi}}}], initContainers: [{name: d, image: i, resources: {limits: {memory: 1Mi}}}]`,
			`{"limits":{"cpu":"2","memory":"1Mi"},"requests":{"cpu":"2","memory":"1Mi"}}`, `LimitRanger plugin set: cpu request for init container d; cpu limit for init container d`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := world(t, limits).Create(pod(test.spec))
			if err != nil {
				t.Fatal(err)
			}
			first := p["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
			if got := admissiontest.Field(first, "resources"); got != test.containers {
				t.Errorf("%s\nwant\n%s", got, test.containers)
			}
			annotations, _ := p["metadata"].(map[string]any)["annotations"].(map[string]any)
			if said, _ := annotations["kubernetes.io/limit-ranger"].(string); said != test.annotation {
				t.Errorf("%s\nwant\n%s", said, test.annotation)
			}
		})
	}
}

const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "

// Pods and claims outside the limits are rejected, and those at the limit are accepted.
func TestLimits(t *testing.T) {
	tests := []struct{ name, limits, object, err string }{
		{"most", `{type: Container, max: {cpu: 2}}`, pod(`containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}]`), ""},
		{"more", `{type: Container, max: {cpu: 2}}`, pod(`containers: [{name: c, image: i, resources: {limits: {cpu: 2001m}}}]`),
			`maximum cpu usage per Container is 2, but limit is 2001m`},
		{"no limit", `{type: Pod, max: {cpu: 2}}`, pod(`containers: [{name: c, image: i}]`), `maximum cpu usage per Pod is 2.  No limit is specified`},
		{"least", `{type: Container, min: {memory: 1Ki}}`, pod(`containers: [{name: c, image: i, resources: {requests: {memory: 1024}}}]`), ""},
		{"less", `{type: Container, min: {memory: 1Ki}}`, pod(`containers: [{name: c, image: i, resources: {requests: {memory: 1000}}}]`),
			`minimum memory usage per Container is 1Ki, but request is 1k`},
		{"no request", `{type: Pod, min: {memory: 1Ki}}`, pod(`containers: [{name: c, image: i}]`), `minimum memory usage per Pod is 1Ki.  No request is specified`},
		{"a ratio", `{type: Container, maxLimitRequestRatio: {cpu: 1500m}}`, pod(`containers: [{name: c, image: i, resources: {requests: {cpu: 1}, limits: {cpu: 1.5}}}]`), ""},
		{"a larger ratio", `{type: Container, maxLimitRequestRatio: {cpu: 1500m}}`, pod(`containers: [{name: c, image: i, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}]`),
			`cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000`},
		{"no ratio", `{type: Container, maxLimitRequestRatio: {cpu: 2}}`, pod(`containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]`),
			`cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0`},
		{"containers together", `{type: Pod, max: {cpu: 3}}`, pod(`containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}, {name: d, image: i, resources: {limits: {cpu: 2}}}]`),
			`maximum cpu usage per Pod is 3, but limit is 4`},
		{"the pod as a whole", `{type: Pod, max: {cpu: 3}}`, pod(`resources: {limits: {cpu: 4}}, containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}]`),
			`maximum cpu usage per Pod is 3, but limit is 4`},
		{"two reasons", `{type: Container, max: {cpu: 1, memory: 1Gi}}`, pod(`containers: [{name: c, image: i, resources: {limits: {cpu: 2, memory: 2Gi}}}]`),
			`[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]`},
		{"a claim", `{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 5Gi}}`, claim + "5Gi}}}}", ""},
		{"a large claim", `{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 5Gi}}`, claim + "6Gi}}}}", `maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi`},
		{"a small claim", `{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 5Gi}}`, claim + "1Mi}}}}", `minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := world(t, test.limits).Create(test.object)
			resource := "pods"
			if strings.HasPrefix(test.object, claim) {
				resource = "persistentvolumeclaims"
			}
			switch want := resource + ` "p" is forbidden: ` + test.err; {
			case test.err == "" && err != nil, test.err != "" && (err == nil || err.Error() != want):
				t.Errorf("%v\nwant\n%s", err, want)
			}
		})
	}
}

// The limits apply to a resized pod; other updates of a pod are not checked.
func TestResize(t *testing.T) {
	w := world(t, `{type: Container, max: {cpu: 2}}`)
	w.Have(pod(`containers: [{name: c, image: i, resources: {limits: {cpu: 1}}}]`))
	_, err := w.Update(pod(`containers: [{name: c, image: i, resources: {limits: {cpu: 3}, requests: {cpu: 3}}}]`), "resize")
	if want := `pods "p" is forbidden: maximum cpu usage per Container is 2, but limit is 3`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	w.Have("{apiVersion: v1, kind: LimitRange, metadata: {name: m}, spec: {limits: [{type: Container, max: {cpu: 0.5}}]}}")
	if _, err := w.Update("{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: b}}}", ""); err != nil {
		t.Error(err)
	}
}
