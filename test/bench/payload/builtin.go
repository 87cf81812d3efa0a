package payload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Builtin is a built-in kind.
type Builtin struct {
	Name             string // name in the rows
	plural, apiRoot  string
	apiVersion, kind string
	make             func(meta metav1.ObjectMeta, revision int) marshaler
	patch            func(spec object) object // wraps a patch of a pod spec into one of the object
	number           string                   // a field of spec
}

type marshaler interface{ Marshal() ([]byte, error) }

// Builtins are the measured kinds. Pods have the most fields. Deployments have those fields in a
// template.
func Builtins() []Builtin {
	return []Builtin{
		{
			Name: "pod", plural: "pods", apiRoot: "/api/v1", apiVersion: "v1", kind: "Pod",
			make: func(meta metav1.ObjectMeta, revision int) marshaler {
				return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: podSpec(revision)}
			},
			patch: func(spec object) object { return object{"spec": spec} }, number: "activeDeadlineSeconds",
		},
		{
			Name: "deployment", plural: "deployments", apiRoot: "/apis/apps/v1", apiVersion: "apps/v1", kind: "Deployment",
			make: func(meta metav1.ObjectMeta, revision int) marshaler {
				labels := map[string]string{"app": "web"}
				return &appsv1.Deployment{
					TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
					Spec: appsv1.DeploymentSpec{
						Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
						Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(revision)},
					},
				}
			},
			patch: func(spec object) object { return object{"spec": object{"template": object{"spec": spec}}} }, number: "replicas",
		},
	}
}

// Objects is the path of the objects of a namespace.
func (b Builtin) Objects(namespace string) string {
	return b.apiRoot + "/namespaces/" + namespace + "/" + b.plural
}

// Object is the path of the nth object.
func (b Builtin) Object(namespace string, n int) string { return b.Objects(namespace) + "/" + Name(n) }

func (b Builtin) object(namespace string, n, revision int) marshaler {
	return b.make(metav1.ObjectMeta{
		Name: Name(n), Namespace: namespace,
		Labels:      map[string]string{"app.kubernetes.io/name": "web", "shard": fmt.Sprint(n % 16)},
		Annotations: map[string]string{"example.com/contact": "the-team-that-owns-this@example.com"},
	}, revision)
}

// JSON is the nth object at a revision.
func (b Builtin) JSON(namespace string, n, revision int) []byte {
	return encode(b.object(namespace, n, revision))
}

// Protobuf is the object of JSON in Kubernetes' protobuf encoding.
func (b Builtin) Protobuf(namespace string, n, revision int) []byte {
	raw, err := b.object(namespace, n, revision).Marshal()
	if err != nil {
		panic(err) // objects from this package always encode
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: b.apiVersion, Kind: b.kind}, Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), data...)
}

// StrategicPatch changes the image of the second container, which is found by its name.
func (b Builtin) StrategicPatch(revision int) []byte {
	return encode(b.patch(object{"containers": []object{{"name": "sidecar", "image": image("sidecar", revision)}}}))
}

// MergePatch changes a number. The number of a pod may only decrease.
func (b Builtin) MergePatch(revision int) []byte {
	return encode(object{"spec": object{b.number: 1_000_000 - revision}})
}

// image has the same length for every revision.
func image(name string, revision int) string {
	return fmt.Sprintf("registry.example.com/team/%s:v1.%07d", name, revision)
}

// podSpec has the usual fields of two containers: variables, probes, volumes, limits. It sets the
// fields that admission plugins would add, so that both servers store the same object.
func podSpec(revision int) corev1.PodSpec {
	quantities := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	container := func(name string, port int32) corev1.Container {
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}, PeriodSeconds: 10}
		return corev1.Container{
			Name: name, Image: image(name, revision), Args: []string{"--serve", "--config=/etc/web/config.yaml"},
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
	forever := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}
	}
	return corev1.PodSpec{
		ServiceAccountName: "default", AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{container("web", 8080), container("sidecar", 9090)},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		Tolerations:  []corev1.Toleration{forever("node.kubernetes.io/not-ready"), forever("node.kubernetes.io/unreachable")},
	}
}

// ServiceAccount is the ServiceAccount "default" as JSON: pods that name none use it.
func ServiceAccount() []byte {
	return encode(object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "default"}})
}
