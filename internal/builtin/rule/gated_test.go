package rule

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/gate"
)

// Fields of gates that are off are dropped, unless the old object has a value in one of them.
func TestDrop(t *testing.T) {
	const (
		signal  = `{spec: {containers: [{name: c, lifecycle: {stopSignal: SIGKILL}}]}}`
		volumes = `{spec: {volumes: [{name: a, emptyDir: {mode: 448}}, {name: b, projected: {defaultUser: 1, sources: [{secret: {name: s, items: [{key: k, path: p, user: 1}]}}]}}]}}`
	)
	for _, tt := range []struct {
		name           string
		of             any
		gates          map[gate.Name]bool
		obj, old, want string
	}{
		{name: "an object that becomes empty", of: corev1.Pod{}, obj: signal, want: `{spec: {containers: [{name: c}]}}`},
		{name: "in use", of: corev1.Pod{}, obj: signal, old: `{spec: {containers: [{name: other, lifecycle: {stopSignal: SIGTERM}}]}}`, want: signal},
		{name: "on", of: corev1.Pod{}, gates: map[gate.Name]bool{"ContainerStopSignals": true}, obj: signal, want: signal},
		{name: "empty before", of: corev1.Pod{}, obj: `{spec: {containers: [{lifecycle: {}}]}}`, want: `{spec: {containers: [{lifecycle: {}}]}}`},
		{name: "a template", of: corev1.PodTemplate{}, obj: `{template: ` + signal + `}`, want: `{template: {spec: {containers: [{name: c}]}}}`},
		{name: "two gates", of: corev1.Pod{}, obj: volumes, want: `{spec: {volumes: [{name: a, emptyDir: {}}, {name: b, projected: {sources: [{secret: {name: s, items: [{key: k, path: p}]}}]}}]}}`},
		{name: "one of two in use", of: corev1.Pod{}, obj: volumes, old: `{spec: {volumes: [{name: x, secret: {secretName: s, defaultUser: 1}}]}}`,
			want: `{spec: {volumes: [{name: a, emptyDir: {}}, {name: b, projected: {defaultUser: 1, sources: [{secret: {name: s, items: [{key: k, path: p, user: 1}]}}]}}]}}`},
		{name: "off", of: corev1.Pod{}, gates: map[gate.Name]bool{"EnvFiles": false}, obj: `{spec: {containers: [{env: [{name: a, valueFrom: {fileKeyRef: {key: k}}}]}]}}`,
			want: `{spec: {containers: [{env: [{name: a, valueFrom: {}}]}]}}`},
		{name: "elements that go with a field", of: corev1.Pod{}, gates: map[gate.Name]bool{"ImageVolume": false},
			obj: `{spec: {volumes: [{name: a, image: {reference: r}}, {name: b, emptyDir: {}}],
				containers: [{volumeMounts: [{name: a}, {name: b}, {name: c}]}], initContainers: [{volumeMounts: [{name: a}]}]}}`,
			want: `{spec: {volumes: [{name: b, emptyDir: {}}], containers: [{volumeMounts: [{name: b}, {name: c}]}], initContainers: [{}]}}`},
		{name: "all elements", of: corev1.PodTemplate{}, gates: map[gate.Name]bool{"ImageVolume": false},
			obj: `{template: {spec: {volumes: [{name: a, image: {}}]}}}`, want: `{template: {spec: {}}}`},
		{name: "elements in use", of: corev1.Pod{}, gates: map[gate.Name]bool{"ImageVolume": false},
			obj: `{spec: {volumes: [{name: a, image: {}}]}}`, old: `{spec: {volumes: [{name: b, image: {}}]}}`, want: `{spec: {volumes: [{name: a, image: {}}]}}`},
		{name: "a map of objects", of: resourcev1.ResourceSlice{}, obj: `{spec: {devices: [{attributes: {a: {bools: [true]}, b: {bool: true}}}]}}`,
			want: `{spec: {devices: [{attributes: {a: {}, b: {bool: true}}}]}}`},
		{name: "an empty list is not in use", of: resourcev1.ResourceSlice{}, obj: `{spec: {skipNodeOperations: [a]}}`, old: `{spec: {skipNodeOperations: []}}`, want: `{spec: {}}`},
		{name: "a value that needs no gate in one list", of: corev1.Pod{}, gates: map[gate.Name]bool{gate.ContainerRestartRules: false},
			obj:  `{spec: {initContainers: [{restartPolicy: Always, restartPolicyRules: [{action: Restart}]}, {restartPolicy: Never}], containers: [{restartPolicy: Always}]}}`,
			old:  `{spec: {initContainers: [{restartPolicy: Always}], containers: [{restartPolicyRules: [{action: Restart}]}], ephemeralContainers: [{restartPolicy: Always}]}}`,
			want: `{spec: {initContainers: [{restartPolicy: Always}, {}], containers: [{}]}}`},
		{name: "other values of that list are in use", of: corev1.Pod{}, gates: map[gate.Name]bool{gate.ContainerRestartRules: false},
			obj: `{spec: {containers: [{restartPolicy: Always}]}}`, old: `{spec: {initContainers: [{restartPolicyRules: [{action: Restart}]}]}}`,
			want: `{spec: {containers: [{restartPolicy: Always}]}}`},
		{name: "an object without entries is not in use", of: corev1.Pod{}, gates: map[gate.Name]bool{gate.PodLevelResources: false},
			obj: `{spec: {resources: {limits: {cpu: "1"}}}}`, old: `{spec: {resources: {claims: [{name: c}], limits: {}}}}`, want: `{spec: {}}`},
		{name: "an object with entries is in use", of: corev1.Pod{}, gates: map[gate.Name]bool{gate.PodLevelResources: false},
			obj: `{spec: {resources: {limits: {cpu: "1"}}}}`, old: `{spec: {resources: {requests: {cpu: "1"}}}}`, want: `{spec: {resources: {limits: {cpu: "1"}}}}`},
		{name: "a kind without gates", of: corev1.ConfigMap{}, obj: `{data: {a: b}}`, want: `{data: {a: b}}`},
	} {
		read := func(text string) (obj map[string]any) {
			if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
				t.Fatal(err)
			}
			return obj
		}
		obj := read(tt.obj)
		GatedOf(reflect.TypeOf(tt.of)).Drop(gate.With(tt.gates), obj, read(tt.old))
		if d := cmp.Diff(read(tt.want), obj); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	GatedOf(reflect.TypeFor[corev1.Pod]()).Drop(nil, nil, nil)
}
