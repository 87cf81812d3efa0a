//go:build !race

package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sidecarPod returns a pod of two containers with the fields that most pods have.
func sidecarPod(name string, revision int) *corev1.Pod {
	quantities := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	container := func(name string, port int32) corev1.Container {
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}, PeriodSeconds: 10}
		return corev1.Container{
			Name: name, Image: fmt.Sprintf("registry.example.com/team/%s:v1.%07d", name, revision), Args: []string{"--serve", "--config=/etc/web/config.yaml"},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
			Env: []corev1.EnvVar{
				{Name: "LOG_LEVEL", Value: "info"},
				{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}, Key: "password"}}},
			},
			Resources:      corev1.ResourceRequirements{Requests: quantities("100m", "128Mi"), Limits: quantities("500m", "256Mi")},
			VolumeMounts:   []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web"}, {Name: "data", MountPath: "/data"}},
			ReadinessProbe: probe, LivenessProbe: probe,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true)},
		}
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", Labels: map[string]string{"app.kubernetes.io/name": "web", "shard": "7"},
			Annotations: map[string]string{"example.com/contact": "the-team-that-owns-this@example.com"},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{container("web", 8080), container("sidecar", 9090)},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		},
	}
}

// A podEncoding encodes pods in a media type.
type podEncoding struct {
	name, contentType string
	encode            func(*corev1.Pod) ([]byte, error)
}

var podEncodings = []podEncoding{
	{"json", "application/json", func(p *corev1.Pod) ([]byte, error) { return json.Marshal(p) }},
	{"protobuf", "application/vnd.kubernetes.protobuf", func(p *corev1.Pod) ([]byte, error) {
		raw, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: raw}
		data, err := u.Marshal()
		return append([]byte("k8s\x00"), data...), err
	}},
}

// send makes a request whose response is in the encoding.
func (h *handled) send(e podEncoding, method, path, contentType string, body []byte, want int) {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Accept", e.contentType)
	if body != nil {
		r.Header.Set("Content-Type", contentType)
	}
	w := &answer{header: http.Header{}}
	h.app.server.ServeHTTP(w, r)
	if w.code != want {
		h.Fatalf("%s %s: %d, not %d", method, path, w.code, want)
	}
}

// BenchmarkPods sends the requests of clients of pods, without network and disk, in JSON and protobuf.
func BenchmarkPods(b *testing.B) {
	h := handle(b)
	const pods, some = "/api/v1/namespaces/default/pods", 500
	encode := func(e podEncoding, name string, revision int) []byte {
		data, err := e.encode(sidecarPod(name, revision))
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	n := 0
	for _, e := range podEncodings {
		name := func(n int) string { return fmt.Sprint(e.name, "-", n%some) }
		for i := range some {
			h.send(e, "POST", pods, e.contentType, encode(e, name(i), 0), 201)
		}
		patch := func(contentType, body string) {
			h.send(e, "PATCH", pods+"/"+name(n), contentType, []byte(body), 200)
		}
		fetch := func() { h.send(e, "GET", pods+"/"+name(n), "", nil, 200) }
		for _, step := range []struct {
			name  string
			ready func() // not measured; nil for none
			do    func()
		}{
			{"create", nil, func() {
				h.send(e, "POST", pods, e.contentType, encode(e, fmt.Sprint("created-", e.name, n), n), 201)
			}},
			{"get", nil, fetch},
			{"get after a change", func() { patch("application/merge-patch+json", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n)) }, fetch},
			{"strategic merge patch", nil, func() {
				patch("application/strategic-merge-patch+json", fmt.Sprintf(`{"spec":{"containers":[{"name":"web","image":"web:%d"}]}}`, n))
			}},
			{"merge patch", nil, func() {
				patch("application/merge-patch+json", fmt.Sprintf(`{"spec":{"activeDeadlineSeconds":%d}}`, 1_000_000_000-n))
			}},
			{"apply", nil, func() {
				body := encode(podEncodings[0], name(n), n)
				h.send(e, "PATCH", pods+"/"+name(n)+"?fieldManager=a&force=true", "application/apply-patch+yaml", body, 200)
			}},
			{"list", nil, func() { h.send(e, "GET", pods+"?limit=500", "", nil, 200) }},
		} {
			b.Run(e.name+"/"+step.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					n++
					if step.ready != nil {
						b.StopTimer()
						step.ready()
						b.StartTimer()
					}
					step.do()
				}
			})
		}
	}
}
