package builtin

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
)

// podSpec is the spec of pods that run forever, and endingSpec of those that end.
const (
	podSpec    = `{restartPolicy: Always, containers: [{name: c, image: i, imagePullPolicy: Always, terminationMessagePolicy: File}], dnsPolicy: Default}`
	endingSpec = `{restartPolicy: Never, containers: [{name: c, image: i, imagePullPolicy: Always, terminationMessagePolicy: File}], dnsPolicy: Default}`
)

// workload fills in a manifest: $FOREVER and $ENDING are pod specs, and $SELECTED is a selector
// with a template.
func workload(text string) string {
	return strings.NewReplacer(
		"$SELECTED", `selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: `+podSpec+`}`,
		"$FOREVER", podSpec, "$ENDING", endingSpec,
	).Replace(text)
}

// Errors of workloads are those of kube-apiserver. old is the replaced object, if any.
func TestValidateWorkloads(t *testing.T) {
	for _, tt := range []struct {
		plural, old, object string
		want                []string
	}{
		{"deployments", "", `{metadata: {name: a}, spec: {$SELECTED}}`, nil},
		{"deployments", "", `{metadata: {name: a}, spec: {replicas: -1, $SELECTED, minReadySeconds: 10, progressDeadlineSeconds: 10}}`, []string{
			`spec.replicas: Invalid value: -1: must be greater than or equal to 0`,
			`spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds`,
		}},
		{"deployments", "", `{metadata: {name: a}, spec: {selector: {}, template: {spec: $ENDING}}}`, []string{
			`spec.selector: Invalid value: {}: empty selector is invalid for deployment`,
			`spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`,
		}},
		{"deployments", "", `{metadata: {name: a}, spec: {$SELECTED, strategy: {type: Recreate, rollingUpdate: {}}}}`, []string{
			"spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
		}},
		{"deployments", "", `{metadata: {name: a}, spec: {$SELECTED, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0%}}}}`, []string{
			"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0",
		}},
		{"deployments", "", `{metadata: {name: a}, spec: {$SELECTED, strategy: {rollingUpdate: {maxSurge: many, maxUnavailable: 101%}}}}`, []string{
			`spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%`,
			`spec.strategy.rollingUpdate.maxSurge: Invalid value: "many": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`,
		}},
		{"deployments", "", `{metadata: {name: a, annotations: {deprecated.deployment.rollback.to: "-1"}}, spec: {$SELECTED}}`, []string{
			`spec.rollback.version: Invalid value: -1: must be greater than or equal to 0`,
		}},
		{"deployments", `{spec: {selector: {matchLabels: {app: b}}}}`, `{spec: {$SELECTED}}`, []string{
			`spec.selector: Invalid value: {"matchLabels":{"app":"a"}}: field is immutable`,
		}},
		{"replicasets", "", `{metadata: {name: a}, spec: {selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: a}}, spec: $FOREVER}}}`, []string{
			"spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match template `labels`",
		}},
		{"statefulsets", "", `{metadata: {name: a}, spec: {$SELECTED}}`, nil},
		{"statefulsets", "", `{metadata: {name: a}, spec: {$SELECTED, podManagementPolicy: Some, serviceName: a.b, ordinals: {start: -1},
			updateStrategy: {type: OnDelete, rollingUpdate: {}}, persistentVolumeClaimRetentionPolicy: {whenDeleted: Keep}}}`, []string{
			`spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0`,
			`spec.podManagementPolicy: Invalid value: "Some": must be 'OrderedReady' or 'Parallel'`,
			`spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":0,"MaxUnavailable":null}: only allowed for updateStrategy 'RollingUpdate'`,
			`spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"`,
			`spec.serviceName: Invalid value: "a.b": must not contain dots`,
		}},
		{"statefulsets", "", `{metadata: {name: a}, spec: {$SELECTED, updateStrategy: {rollingUpdate: {maxUnavailable: 0}}}}`, []string{
			`spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0`,
		}},
		{"statefulsets", `{spec: {serviceName: a, $SELECTED}}`, `{spec: {serviceName: b, $SELECTED}}`, []string{
			`spec.serviceName: Invalid value: "b": field is immutable`,
		}},
		{"daemonsets", "", `{metadata: {name: a}, spec: {$SELECTED, updateStrategy: {rollingUpdate: {maxSurge: 1}}}}`, []string{
			`spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero`,
		}},
		{"daemonsets", "", `{metadata: {name: a}, spec: {$SELECTED, updateStrategy: {type: Never}}}`, []string{
			`spec.updateStrategy: Unsupported value: {"Type":"Never","RollingUpdate":null}: supported values: "RollingUpdate", "OnDelete"`,
		}},
		{"controllerrevisions", "", `{metadata: {name: a}, revision: -1}`, []string{
			`revision: Invalid value: -1: must be greater than or equal to 0`, `data: Required value: data is mandatory`,
		}},
		{"replicationcontrollers", "", `{metadata: {name: a}, spec: {template: {metadata: {labels: {app: a}}, spec: $FOREVER}}}`, nil},
		{"replicationcontrollers", "", `{metadata: {name: a}, spec: {}}`, []string{`spec.selector: Required value`, `spec.template: Required value`}},

		{"jobs", "", `{metadata: {name: a, uid: u}, spec: {template: {spec: $ENDING}}}`, nil},
		{"jobs", "", `{metadata: {name: a, uid: u}, spec: {template: {spec: $FOREVER}}}`, []string{
			`spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`,
		}},
		{"jobs", "", `{metadata: {name: a, uid: u}, spec: {template: {metadata: {labels: {job-name: b}}, spec: $ENDING}}}`, []string{
			`spec.template.metadata.labels[job-name]: Invalid value: {"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"a","controller-uid":"u","job-name":"b"}: must be 'a'`,
		}},
		{"jobs", "", `{metadata: {name: a.b, uid: u}, spec: {completionMode: Indexed, completions: 2, maxFailedIndexes: 3, template: {spec: $ENDING}}}`, []string{
			`spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified`,
			`spec.maxFailedIndexes: Invalid value: 3: must be less than or equal to completions`,
			`metadata.name: Invalid value: "a.b": will not able to create pod with invalid DNS label: a.b-1`,
		}},
		{"jobs", "", `{metadata: {name: a, uid: u}, spec: {podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, values: [1, 0, 1]}}, {action: Stop}]}, template: {spec: $ENDING}}}`, []string{
			`spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`,
			`spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator`,
			`spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 1`,
			`spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [1,0,1]: must be ordered`,
			`spec.podFailurePolicy.rules[1].action: Unsupported value: "Stop": supported values: "Count", "FailIndex", "FailJob", "Ignore"`,
			`spec.podFailurePolicy.rules[1]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`,
		}},
		{"jobs", "", `{metadata: {name: a, uid: u}, spec: {completionMode: Indexed, completions: 5, successPolicy: {rules: [{succeededIndexes: "1-3", succeededCount: 4}, {succeededIndexes: "3-9"}]}, template: {spec: $ENDING}}}`, []string{
			`spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of indexes in the specified succeededIndexes field)`,
			`spec.successPolicy.rules[1].succeededIndexes: Invalid value: "3-9": error parsing succeededIndexes: too large index: "9"`,
		}},

		{"cronjobs", "", `{metadata: {name: a}, spec: {schedule: "@daily", timeZone: Europe/Berlin, jobTemplate: {spec: {template: {spec: $ENDING}}}}}`, nil},
		{"cronjobs", "", `{metadata: {name: a}, spec: {schedule: "* * * *", timeZone: Mars/Olympus, jobTemplate: {spec: {manualSelector: true, template: {spec: $ENDING}}}}}`, []string{
			`spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]`,
			`spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus`,
			`spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"`,
		}},
		{"cronjobs", "", `{metadata: {name: a}, spec: {schedule: "TZ=UTC @daily", jobTemplate: {spec: {template: {spec: $ENDING}}}}}`, []string{
			`spec.schedule: Invalid value: "TZ=UTC @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`,
		}},

		{"poddisruptionbudgets", "", `{spec: {minAvailable: 50%, selector: {}}}`, nil},
		{"poddisruptionbudgets", "", `{spec: {minAvailable: 101%, unhealthyPodEvictionPolicy: Never}}`, []string{
			`spec.minAvailable: Invalid value: "101%": must not be greater than 100%`,
			`spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget"`,
		}},
	} {
		d := definition(t, tt.plural)
		var old map[string]any
		if tt.old != "" {
			old = completed(t, d, workload(tt.old))
		}
		_, errs := write(t, d, read(t, workload(tt.object)), old)
		same(t, tt.plural+" "+tt.object, messages(errs), tt.want)
	}
}

// Transitions of the status of a Job.
func TestValidateJobStatus(t *testing.T) {
	d := definition(t, "jobs")
	const spec = `metadata: {name: a, uid: u}, spec: {template: {spec: ` + endingSpec + `}}`
	for _, tt := range []struct {
		old, now string
		want     []string
	}{
		{`{startTime: "2026-01-02T03:04:05Z"}`, `{startTime: "2026-01-02T03:04:05Z", active: 2, ready: 3}`, []string{
			`status.ready: Invalid value: 3: cannot set more ready pods than active`,
		}},
		{`{startTime: "2026-01-02T03:04:05Z", failed: 2, succeeded: 1}`, `{startTime: "2026-01-02T03:04:06Z", failed: 1}`, []string{
			`status.startTime: Invalid value: "2026-01-02T03:04:06Z": field is immutable for unsuspended job once set`,
			`status.failed: Invalid value: 1: cannot decrease the failed counter`,
			`status.succeeded: Invalid value: 0: cannot decrease the succeeded counter`,
		}},
		{`{}`, `{conditions: [{type: Complete, status: "True"}], active: 1}`, []string{
			`status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition`,
			`status.completionTime: Required value: completionTime is required for Complete jobs`,
			`status.startTime: Required value: startTime is required for finished job`,
			`status.active: Invalid value: 1: active>0 is invalid for finished job`,
		}},
		{`{conditions: [{type: Failed, status: "True"}]}`, `{}`, []string{
			`status.conditions: Invalid value: cannot disable the terminal Failed=True condition`,
		}},
		{`{}`, `{completedIndexes: "0"}`, []string{
			`status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode`,
		}},
	} {
		v := d.Versions[0]
		trees := [2]map[string]any{}
		for i, status := range []string{tt.old, tt.now} {
			obj, _, err := v.Schema.Complete(read(t, "{"+spec+", status: "+status+"}"))
			if err != nil {
				t.Fatal(err)
			}
			trees[i] = obj
		}
		errs := v.Subresource("status").Validate(t.Context(), &resource.Change{Object: trees[1], Old: trees[0]})
		same(t, tt.old+" to "+tt.now, messages(errs), tt.want)
	}
}

// Hooks complete a workload before it is stored.
func TestPrepareWorkloads(t *testing.T) {
	daemons := definition(t, "daemonsets")
	first := completed(t, daemons, workload(`{metadata: {name: a}, spec: {$SELECTED}}`))
	for object, want := range map[string]string{
		`{metadata: {name: a, annotations: {deprecated.daemonset.template.generation: "9"}}, spec: {$SELECTED}}`:                           "1",
		`{metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a, b: c}}, spec: $FOREVER}}}`: "2",
	} {
		obj, _ := write(t, daemons, read(t, workload(object)), first)
		same(t, object, obj["metadata"].(map[string]any)["annotations"], any(map[string]any{"deprecated.daemonset.template.generation": want}))
	}

	own := map[string]any{
		"batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "a", "controller-uid": "u", "job-name": "a",
	}
	job, _ := write(t, definition(t, "jobs"), read(t, workload(`{metadata: {name: a, uid: u}, spec: {template: {spec: $ENDING}}}`)), nil)
	same(t, "labels of a Job", job["metadata"].(map[string]any)["labels"], any(own))
	same(t, "selector", job["spec"].(map[string]any)["selector"], any(map[string]any{"matchLabels": map[string]any{"batch.kubernetes.io/controller-uid": "u"}}))
}
