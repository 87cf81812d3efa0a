package builtin

import (
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

const autoscaler = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {
	scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, maxReplicas: 3, metrics: [
		{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}},
		{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: "5"}}}]}}`

// An autoscaler has the same content in both versions: v1 keeps the fields that it lacks in
// annotations.
func TestAutoscalerVersions(t *testing.T) {
	d := definition(t, "horizontalpodautoscalers")
	now, _, err := d.Version("v2").Schema.Complete(read(t, autoscaler))
	if err != nil {
		t.Fatal(err)
	}
	old := converted(t, d, now, "v1")
	same(t, "apiVersion", object.APIVersion(old), "autoscaling/v1")
	same(t, "spec in v1", old["spec"], any(map[string]any{
		"maxReplicas": int64(3), "minReplicas": int64(1), "targetCPUUtilizationPercentage": int64(70),
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
	}))
	same(t, "annotations in v1", object.Metadata(old)["annotations"], any(map[string]any{
		"autoscaling.alpha.kubernetes.io/metrics": `[{"type":"Pods","pods":{"metricName":"requests","targetAverageValue":"5"}}]`,
	}))
	back := converted(t, d, old, "v2")
	metrics := back["spec"].(map[string]any)["metrics"].([]any)
	same(t, "metrics, of which the CPU is the last now", len(metrics), 2)
	same(t, "annotations in v2", object.Metadata(back)["annotations"], nil)

	// Without metrics, both versions have the same CPU target.
	least, _, err := d.Version("v1").Schema.Complete(read(t, `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a},
		spec: {scaleTargetRef: {kind: ReplicationController, name: r}, maxReplicas: 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "CPU", least["spec"].(map[string]any)["targetCPUUtilizationPercentage"], any(int64(80)))
	same(t, "in v1", messages(d.Validate(t.Context(), &resource.Change{Object: converted(t, d, least, "v2")})), []string(nil))
}

// converted returns a copy of an object, converted to another version.
func converted(t *testing.T, d *resource.Definition, obj map[string]any, version string) map[string]any {
	t.Helper()
	out, err := d.Convert(t.Context(), []map[string]any{object.CloneTree(obj)}, version)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// Errors name fields of v2, in whichever version the autoscaler was sent.
func TestValidateAutoscaler(t *testing.T) {
	d := definition(t, "horizontalpodautoscalers")
	for text, want := range map[string][]string{
		autoscaler: nil,
		`{apiVersion: autoscaling/v1, spec: {scaleTargetRef: {kind: a/b, apiVersion: v1}, minReplicas: 2, maxReplicas: 1, targetCPUUtilizationPercentage: 0}}`: {
			"spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`",
			`spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain '/'`,
			`spec.scaleTargetRef.name: Required value`,
			`spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group`,
			`spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0`,
		},
		`{apiVersion: autoscaling/v2, spec: {scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}, minReplicas: 0, maxReplicas: 1, metrics: [
			{type: Pods, resource: {name: cpu, target: {type: Some}}, pods: {metric: {name: m}, target: {type: AverageValue}}}], behavior: {scaleUp: {stabilizationWindowSeconds: 3601,
			selectPolicy: Some, policies: [{type: Nodes, value: 0, periodSeconds: 1801}]}}}}`: {
			`spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue`,
			`spec.metrics[0].resource: Forbidden: must populate the given metric source only`,
			"spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
			`spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600`,
			`spec.behavior.scaleUp.selectPolicy: Unsupported value: "Some": supported values: "Disabled", "Max", "Min"`,
			`spec.behavior.scaleUp.policies[0].type: Unsupported value: "Nodes": supported values: "Percent", "Pods"`,
			`spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero`,
			`spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800`,
		},
	} {
		obj := read(t, text)
		version := object.APIVersion(obj)[len("autoscaling/"):]
		obj, _, err := d.Version(version).Schema.Complete(obj)
		if err != nil {
			t.Fatal(err)
		}
		same(t, text, messages(d.Validate(t.Context(), &resource.Change{Object: converted(t, d, obj, "v2")})), want)
	}
}

// Cells of workloads and autoscalers.
func TestWorkloadCells(t *testing.T) {
	for _, tt := range []struct {
		plural, object, column string
		want                   any
	}{
		{"deployments", `{spec: {replicas: 3}, status: {readyReplicas: 2}}`, "Ready", "2/3"},
		{"deployments", `{spec: {selector: {matchLabels: {a: b}}}}`, "Selector", "a=b"},
		{"replicasets", `{spec: {template: {spec: {containers: [{name: a, image: i}, {name: b, image: j}]}}}}`, "Images", "i,j"},
		{"replicasets", `{spec: {}}`, "Selector", "<none>"},
		{"daemonsets", `{spec: {template: {spec: {nodeSelector: {a: b}}}}}`, "Node Selector", "a=b"},
		{"controllerrevisions", `{metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, controller: true}]}}`, "Controller", "daemonset.apps/d"},
		{"jobs", `{spec: {completions: 2}, status: {succeeded: 1}}`, "Completions", "1/2"},
		{"jobs", `{spec: {parallelism: 3}}`, "Completions", "0/1 of 3"},
		{"jobs", `{status: {conditions: [{type: Suspended, status: "True"}]}}`, "Status", "Suspended"},
		{"jobs", `{metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}, status: {conditions: [{type: Suspended, status: "True"}]}}`, "Status", "Terminating"},
		{"jobs", `{status: {startTime: "2026-01-02T03:04:05Z", completionTime: "2026-01-02T03:05:35Z"}}`, "Duration", "90s"},
		{"jobs", `{status: {startTime: "2026-01-02T03:04:05Z"}}`, "Duration", view.Age("2026-01-02T03:04:05Z")},
		{"cronjobs", `{spec: {suspend: true}}`, "Suspend", "True"},
		{"cronjobs", `{status: {active: [{}]}}`, "Active", int64(1)},
		{"poddisruptionbudgets", `{spec: {minAvailable: 50%}}`, "Min Available", "50%"},
		{"poddisruptionbudgets", `{spec: {minAvailable: 50%}}`, "Max Unavailable", "N/A"},
		{"horizontalpodautoscalers", autoscaler, "Targets", "cpu: <unknown>/70%, <unknown>/5"},
	} {
		found := false
		for _, c := range definition(t, tt.plural).Versions[0].Columns() {
			if c.Name == tt.column {
				found = true
				same(t, tt.plural+" "+tt.column+" of "+tt.object, c.Cell(read(t, tt.object)), tt.want)
			}
		}
		if !found {
			t.Errorf("%s have no column %s", tt.plural, tt.column)
		}
	}
}

// A new autoscaler has no status, even in the annotations of v1.
func TestAutoscalerStatusInV1(t *testing.T) {
	d := definition(t, "horizontalpodautoscalers")
	v := d.Version("v1")
	obj, _, err := v.Schema.Complete(read(t, `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a, annotations: {
		autoscaling.alpha.kubernetes.io/conditions: '[{"type":"AbleToScale","status":"True"}]'}},
		spec: {scaleTargetRef: {kind: ReplicationController, name: r}, maxReplicas: 2}, status: {currentReplicas: 2, desiredReplicas: 2, currentCPUUtilizationPercentage: 10}}`))
	if err != nil {
		t.Fatal(err)
	}
	obj = converted(t, d, obj, "v2")
	d.StorageVersion().Revert(t.Context(), &resource.Change{Object: obj})
	obj = converted(t, d, obj, "v1")
	same(t, "status", obj["status"], any(map[string]any{"currentReplicas": int64(0), "desiredReplicas": int64(0)}))
	same(t, "annotations", object.Metadata(obj)["annotations"], nil)
}
