package pod

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// podOf returns a pod with defaults, from its metadata, spec and status.
func podOf(t testing.TB, text string) map[string]any {
	t.Helper()
	pod := treeOf(t, text)
	kind.SetDefault(kind.Child(pod, "metadata"), "name", "p")
	spec := kind.Child(pod, "spec")
	if spec["containers"] == nil {
		spec["containers"] = []any{map[string]any{"name": "c", "image": "i"}}
	}
	rules().Fill(reflect.TypeFor[corev1.Pod](), pod)
	return pod
}

// write runs the hooks of a write and returns the errors.
func write(t testing.TB, pod, old map[string]any, subresource string) []string {
	t.Helper()
	d := pods(nil, nil, Dependencies{Rules: rules})
	v := d.StorageVersion()
	revert, validate := v.Revert, d.Validate
	if s := v.Subresource(subresource); s != nil {
		revert, validate = s.Revert, s.Validate
	}
	c := &resource.Change{Object: pod, Old: old, Name: "p", Subresource: subresource}
	revert(t.Context(), c)
	d.Prepare(t.Context(), c)
	var out []string
	for _, err := range validate(t.Context(), c) {
		out = append(out, err.Error())
	}
	return out
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// Errors of new pods.
func TestNewPods(t *testing.T) {
	const gated = "Scheduling is blocked due to non-empty scheduling gates"
	for _, test := range []struct {
		name, pod string
		at        string // the path to compare
		want      any
	}{
		{"the status is not the client's", `{status: {phase: Running, podIP: 10.0.0.1}}`, "status", map[string]any{"phase": "Pending", "qosClass": "BestEffort"}},
		{"requests are limits", `{spec: {containers: [{name: c, image: i, resources: {limits: {cpu: "1", memory: 1Gi}}}]}}`, "status.qosClass", "Guaranteed"},
		{"requests are less than limits", `{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}, limits: {cpu: "2", memory: 1Gi}}}]}}`, "status.qosClass", "Burstable"},
		{"some ask for nothing", `{spec: {containers: [{name: c, image: i, resources: {limits: {cpu: "1", memory: 1Gi}}}, {name: d, image: i}]}}`, "status.qosClass", "Burstable"},
		{"the whole asks", `{spec: {resources: {limits: {cpu: "1", memory: 1Gi}}}}`, "status.qosClass", "Guaranteed"},
		{"gates", `{spec: {schedulingGates: [{name: g}]}}`, "status.conditions.0.message", gated},
		{"one account by two names", `{spec: {serviceAccount: a}}`, "spec.serviceAccountName", "a"},
		{"the new name counts", `{spec: {serviceAccount: a, serviceAccountName: b}}`, "spec.serviceAccount", "b"},
		{"no negative time", `{spec: {terminationGracePeriodSeconds: -5}}`, "spec.terminationGracePeriodSeconds", int64(1)},
		{"ports of the host", `{spec: {hostNetwork: true, containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}}`, "spec.containers.0.ports.0.hostPort", int64(80)},
		{
			"the whole requests what its parts do", `{spec: {resources: {limits: {cpu: "2"}}, containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}, {name: d, image: i, resources: {requests: {cpu: 300m}}}]}}`,
			"spec.resources.requests", map[string]any{"cpu": "800m"},
		},
		{
			"and is limited as all of them are", `{spec: {resources: {requests: {cpu: 800m}}, containers: [{name: c, image: i, resources: {limits: {cpu: 500m}}}, {name: d, image: i, resources: {limits: {cpu: 300m}}}]}}`,
			"spec.resources.limits", map[string]any{"cpu": "800m"},
		},
		{
			"keys of labels become a selection",
			`{metadata: {labels: {v: "1"}}, spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, matchLabelKeys: [v, none]}]}}`,
			"spec.topologySpreadConstraints.0.labelSelector", map[string]any{"matchExpressions": []any{map[string]any{"key": "v", "operator": "In", "values": []any{"1"}}}},
		},
		{
			"an annotation becomes a field", `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/c: localhost/x}}}`,
			"spec.containers.0.securityContext", map[string]any{"appArmorProfile": map[string]any{"type": "Localhost", "localhostProfile": "x"}},
		},
		{"features that are off", `{spec: {schedulingGroup: {podGroupName: g}, containers: [{name: c, image: i, lifecycle: {stopSignal: SIGTERM}}]}}`, "spec.containers.0.lifecycle", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := podOf(t, test.pod)
			if errs := write(t, pod, nil, ""); errs != nil {
				t.Errorf("it is not valid: %q", errs)
			}
			same(t, test.at, at(pod, test.at), test.want)
			if kind.Value(pod, "spec", "schedulingGroup") != nil {
				t.Error("the field of a feature that is off is there")
			}
		})
	}
}

// at returns the value at a path of names and indexes, or nil.
func at(v any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch of := v.(type) {
		case map[string]any:
			v = of[step]
		case []any:
			v = of[int(step[0]-'0')]
		default:
			return nil
		}
	}
	return v
}

// An update keeps fields that the client omits because it does not know them.
func TestStatusKeepsWhatClientsDoNotKnow(t *testing.T) {
	old := podOf(t, `{spec: {nodeName: node-1}, status: {qosClass: BestEffort, observedGeneration: 3, conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`)
	pod, _ := object.Clone(old).(map[string]any)
	kind.Child(pod, "spec")["nodeName"] = "other"
	pod["status"] = treeOf(t, `{phase: Running, conditions: [{type: Ready, status: "False"}]}`)
	if errs := write(t, pod, old, "status"); errs != nil {
		t.Errorf("it is not valid: %q", errs)
	}
	same(t, "node", at(pod, "spec.nodeName"), "node-1")
	same(t, "status", pod["status"], treeOf(t, `{phase: Running, qosClass: BestEffort, observedGeneration: 3, conditions: [{type: Ready, status: "False", observedGeneration: 2}]}`))
}

// A client may send a status with any deletion timestamp.
func TestStatusKeepsTimeOfDeletion(t *testing.T) {
	for name, deleted := range map[string]any{"not deleted": nil, "deleted": "2026-01-01T00:00:00Z"} {
		t.Run(name, func(t *testing.T) {
			old := podOf(t, `{spec: {nodeName: node-1}}`)
			kind.Put(object.Metadata(old), "deletionTimestamp", deleted)
			pod, _ := object.Clone(old).(map[string]any)
			object.Metadata(pod)["deletionTimestamp"] = "2030-01-01T00:00:00Z"
			pod["status"] = treeOf(t, `{phase: Running}`)
			if errs := write(t, pod, old, "status"); errs != nil {
				t.Errorf("it is not valid: %q", errs)
			}
			same(t, "deletionTimestamp", object.Metadata(pod)["deletionTimestamp"], deleted)
		})
	}
}
