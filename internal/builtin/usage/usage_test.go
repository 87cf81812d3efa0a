package usage

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

func read(t *testing.T, e Evaluator, text string) Object {
	t.Helper()
	o, err := e.Read(t.Context(), func(into any) error { return yaml.Unmarshal([]byte(text), into) })
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestUsage(t *testing.T) {
	pods := podEvaluator{now: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }}
	tests := []struct {
		name, object, want string
		of                 Evaluator
	}{
		{name: "any object is one", of: count{Group: "example.com", Resource: "gears"}, want: "count/gears.example.com=1"},
		{name: "some have two names", of: count{Resource: "secrets"}, want: "count/secrets=1,secrets=1"},
		{name: "a pod asks for nothing", of: pods, object: `{}`, want: "count/pods=1,pods=1"},
		{name: "a pod has run", of: pods, want: "count/pods=1",
			object: `{spec: {containers: [{resources: {requests: {cpu: 1}}}]}, status: {phase: Succeeded}}`},
		{name: "a pod should have stopped", of: pods, object: `{metadata: {deletionTimestamp: "2026-01-01T11:00:00Z", deletionGracePeriodSeconds: 30}}`, want: "count/pods=1"},
		{name: "a pod still has time", of: pods, object: `{metadata: {deletionTimestamp: "2026-01-01T11:59:45Z", deletionGracePeriodSeconds: 30}}`, want: "count/pods=1,pods=1"},
		{name: "a pod starts with the most that one of its containers asks for", of: pods,
			object: `{spec: {initContainers: [{resources: {requests: {cpu: 3}}}, {restartPolicy: Always, resources: {requests: {cpu: 1}}}],
				containers: [{resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi}}}], overhead: {cpu: 100m, memory: 1Mi}}}`,
			want: "count/pods=1,cpu=3100m,limits.memory=2049Mi,memory=1025Mi,pods=1,requests.cpu=3100m,requests.memory=1025Mi"},
		{name: "a pod as a whole asks for less", of: pods,
			object: `{spec: {resources: {requests: {cpu: 1}}, containers: [{resources: {requests: {cpu: 4}}}]}}`, want: "count/pods=1,cpu=1,pods=1,requests.cpu=1"},
		{name: "a pod is being resized", of: pods,
			object: `{spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}, status: {containerStatuses: [{name: c, allocatedResources: {cpu: 2}, resources: {requests: {cpu: 3}}}]}}`,
			want:   "count/pods=1,cpu=3,pods=1,requests.cpu=3"},
		{name: "devices are limited by what is asked for only", of: pods,
			object: `{spec: {containers: [{resources: {requests: {example.com/gpu: 2, hugepages-2Mi: 4Mi}}}]}}`,
			want:   "count/pods=1,hugepages-2Mi=4Mi,pods=1,requests.example.com/gpu=2,requests.hugepages-2Mi=4Mi"},
		{name: "a Service in the cluster", of: serviceEvaluator{}, object: `{spec: {type: ClusterIP, ports: [{port: 1}]}}`,
			want: "count/services=1,services=1,services.loadbalancers=0,services.nodeports=0"},
		{name: "a Service with ports of nodes", of: serviceEvaluator{}, object: `{spec: {type: NodePort, ports: [{port: 1}, {port: 2}]}}`,
			want: "count/services=1,services=1,services.loadbalancers=0,services.nodeports=2"},
		{name: "a balancer that needs no ports of nodes but one", of: serviceEvaluator{},
			object: `{spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 1, nodePort: 30000}, {port: 2}]}}`,
			want:   "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
		{name: "a volume of a class", of: volumeEvaluator{}, object: `{spec: {storageClassName: gold, resources: {requests: {storage: 1.5}}}}`,
			want: "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=2,persistentvolumeclaims=1,requests.storage=2"},
		{name: "a volume that was given more", of: volumeEvaluator{}, object: `{spec: {resources: {requests: {storage: 1Gi}}}, status: {allocatedResources: {storage: 2Gi}}}`,
			want: "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2Gi"},
		{name: "devices", of: claimEvaluator{extended: map[string]string{"a": "example.com/a"}},
			object: `{spec: {devices: {requests: [{exactly: {deviceClassName: a, allocationMode: ExactCount, count: 2}},
				{firstAvailable: [{deviceClassName: b, allocationMode: ExactCount, count: 1}, {deviceClassName: b, allocationMode: All}]}]}}}`,
			want: "a.deviceclass.resource.k8s.io/devices=2,b.deviceclass.resource.k8s.io/devices=32,count/resourceclaims.resource.k8s.io=1," +
				"requests.deviceclass.resource.kubernetes.io/a=2,requests.deviceclass.resource.kubernetes.io/b=32,requests.example.com/a=2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Text(read(t, test.of, test.object).Usage()); got != test.want {
				t.Errorf("used %s, want %s", got, test.want)
			}
		})
	}
}

// Limits matches the names in Usage.
func TestLimits(t *testing.T) {
	tests := []struct {
		of      Evaluator
		yes, no string
	}{
		{podEvaluator{}, "pods count/pods cpu limits.cpu hugepages-1Gi requests.hugepages-1Gi requests.example.com/gpu requests.deviceclass.resource.kubernetes.io/a",
			"example.com/gpu services count/pods.example.com requests.storage storage"},
		{serviceEvaluator{}, "services count/services services.nodeports services.loadbalancers", "count/services.example.com pods"},
		{volumeEvaluator{}, "persistentvolumeclaims requests.storage a.storageclass.storage.k8s.io/requests.storage a.storageclass.storage.k8s.io/persistentvolumeclaims", "storage requests.ephemeral-storage"},
		{claimEvaluator{extended: map[string]string{"a": "example.com/a"}, known: map[string]bool{"example.com/a": true}},
			"count/resourceclaims.resource.k8s.io x.deviceclass.resource.k8s.io/devices requests.example.com/a requests.deviceclass.resource.kubernetes.io/a",
			"requests.example.com/b requests.deviceclass.resource.kubernetes.io/b"},
		{count{Group: "example.com", Resource: "gears"}, "count/gears.example.com", "count/gears count/gears.example.org gears count/gears.example.com.de"},
		{count{Resource: "configmaps"}, "count/configmaps configmaps", "count/configmaps. secrets"},
	}
	for _, test := range tests {
		for i, names := range []string{test.yes, test.no} {
			for name := range strings.FieldsSeq(names) {
				if got := test.of.Limits(corev1.ResourceName(name)); got != (i == 0) {
					t.Errorf("%T limits %s: %v", test.of, name, got)
				}
			}
		}
	}
}

func TestScopes(t *testing.T) {
	pods := podEvaluator{now: time.Now}
	tests := []struct {
		object, scope string
		of            Evaluator
		want          bool
	}{
		{`{spec: {activeDeadlineSeconds: 0}}`, `{scopeName: Terminating, operator: Exists}`, pods, true},
		{`{spec: {activeDeadlineSeconds: 0}}`, `{scopeName: NotTerminating, operator: Exists}`, pods, false},
		{`{}`, `{scopeName: BestEffort, operator: Exists}`, pods, true},
		{`{spec: {containers: [{resources: {limits: {cpu: 1}}}]}}`, `{scopeName: BestEffort, operator: Exists}`, pods, false},
		{`{status: {qosClass: Burstable}}`, `{scopeName: NotBestEffort, operator: Exists}`, pods, true},
		{`{}`, `{scopeName: PriorityClass, operator: Exists}`, pods, false},
		{`{}`, `{scopeName: PriorityClass, operator: NotIn, values: [a]}`, pods, true},
		{`{spec: {priorityClassName: a}}`, `{scopeName: PriorityClass, operator: In, values: [a]}`, pods, true},
		{`{spec: {priorityClassName: a}}`, `{scopeName: PriorityClass, operator: DoesNotExist}`, pods, false},
		{`{spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {namespaceSelector: {}}}]}}}}`,
			`{scopeName: CrossNamespacePodAffinity, operator: Exists}`, pods, true},
		{`{spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}}}}`,
			`{scopeName: CrossNamespacePodAffinity, operator: Exists}`, pods, false},
		{`{spec: {volumeAttributesClassName: a}, status: {currentVolumeAttributesClassName: b}}`, `{scopeName: VolumeAttributesClass, operator: In, values: [b]}`, volumeEvaluator{}, true},
		{`{}`, `{scopeName: VolumeAttributesClass, operator: Exists}`, volumeEvaluator{}, false},
		{`{}`, `{scopeName: BestEffort, operator: Exists}`, count{}, false},
	}
	for _, test := range tests {
		var scope corev1.ScopedResourceSelectorRequirement
		if err := yaml.Unmarshal([]byte(test.scope), &scope); err != nil {
			t.Fatal(err)
		}
		if got, err := read(t, test.of, test.object).InScope(scope); got != test.want || err != nil {
			t.Errorf("%s is in %s: %v, %v", test.object, test.scope, got, err)
		}
	}
}

func TestLacks(t *testing.T) {
	pods := podEvaluator{now: time.Now}
	names := []corev1.ResourceName{"requests.cpu", "limits.memory", "pods", "requests.ephemeral-storage"}
	tests := []struct{ object, want string }{
		{`{spec: {containers: [{name: a, resources: {requests: {cpu: 1}, limits: {memory: 1}}}]}}`, ""},
		{`{spec: {containers: [{name: b}, {name: a}], initContainers: [{name: c, resources: {limits: {memory: 1}}}]}}`,
			"must specify limits.memory for: a,b; requests.cpu for: a,b,c"},
		{`{spec: {resources: {limits: {cpu: 1}}, containers: [{name: b}]}}`, ""},
	}
	for _, test := range tests {
		got := ""
		if err := read(t, pods, test.object).Lacks(names); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.object, got, test.want)
		}
	}
}

// Only some updates can increase the usage.
func TestUpdates(t *testing.T) {
	ends := object.Tree{"spec": object.Tree{"activeDeadlineSeconds": int64(1)}}
	for _, test := range []struct {
		of          Evaluator
		subresource string
		now         object.Tree
		want        bool
	}{
		{podEvaluator{}, "", object.Tree{}, false},
		{podEvaluator{}, "", ends, true},
		{podEvaluator{}, "status", ends, false},
		{podEvaluator{}, "resize", object.Tree{}, true},
		{serviceEvaluator{}, "", nil, true},
		{serviceEvaluator{}, "status", nil, false},
		{volumeEvaluator{}, "status", nil, true},
		{count{}, "", nil, false},
	} {
		if got := test.of.Updates(test.subresource, test.now, object.Tree{}); got != test.want {
			t.Errorf("%T, %q: %v", test.of, test.subresource, got)
		}
	}
}
