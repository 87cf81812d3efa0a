package pod

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/view"
)

// treeOf parses an object.
func treeOf(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tree
}

// Columns of a pod with two containers, a and b, in every state.
func TestStatusOfPods(t *testing.T) {
	const (
		running   = `{name: a, ready: true, restartCount: 0, state: {running: {}}}`
		unready   = `{name: a, ready: false, restartCount: 0, state: {running: {}}}`
		completed = `{name: b, restartCount: 0, state: {terminated: {exitCode: 0, reason: Completed}}}`
		failed    = `{name: b, restartCount: 2, state: {terminated: {exitCode: 3}}, lastState: {terminated: {exitCode: 3, finishedAt: "2026-01-02T03:04:05Z"}}}`
		killed    = `{name: b, restartCount: 1, state: {terminated: {exitCode: 137, signal: 9}}}`
		pulling   = `{name: b, restartCount: 0, state: {waiting: {reason: ImagePullBackOff}}}`
		ready     = `conditions: [{type: Ready, status: "True"}]`
	)
	ago := view.TextWithAge{Before: "2 (", At: "2026-01-02T03:04:05Z", After: " ago)"}
	for _, test := range []struct {
		name, spec, status string
		ready, says        string
		restarts           any
	}{
		{"new", "", `phase: Pending`, "0/2", "Pending", "0"},
		{"gated", "", `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}`, "0/2", "SchedulingGated", "0"},
		{"evicted", "", `{phase: Failed, reason: Evicted}`, "0/2", "Evicted", "0"},
		{"running", "", `{phase: Running, containerStatuses: [` + running + `, ` + pulling + `]}`, "1/2", "ImagePullBackOff", "0"},
		{"unready", "", `{phase: Running, containerStatuses: [` + unready + `]}`, "0/2", "Running", "0"},
		{"one has ended", "", `{phase: Running, ` + ready + `, containerStatuses: [` + running + `, ` + completed + `]}`, "1/2", "Running", "0"},
		{"one has ended, unready", "", `{phase: Running, containerStatuses: [` + running + `, ` + completed + `]}`, "1/2", "NotReady", "0"},
		{"one has failed", "", `{phase: Running, containerStatuses: [` + running + `, ` + failed + `]}`, "1/2", "ExitCode:3", ago},
		{"killed", "", `{phase: Failed, containerStatuses: [` + killed + `]}`, "0/2", "Signal:9", "1"},
		{"an error is told before an end", "", `{phase: Failed, containerStatuses: [` + completed + `, ` + killed + `]}`, "0/2", "Signal:9", "1"},
		{"init waits", "i", `{phase: Pending, initContainerStatuses: [{name: i, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}}]}`, "0/2", "Init:CrashLoopBackOff", "4"},
		{"init runs", "i", `{phase: Pending, initContainerStatuses: [{name: i, restartCount: 0, state: {running: {}}}]}`, "0/2", "Init:0/2", "0"},
		{"init fails", "i", `{phase: Pending, initContainerStatuses: [{name: i, restartCount: 0, state: {terminated: {exitCode: 1}}}]}`, "0/2", "Init:ExitCode:1", "0"},
		{"init is killed", "i", `{phase: Pending, initContainerStatuses: [{name: i, restartCount: 0, state: {terminated: {exitCode: 1, signal: 15}}}]}`, "0/2", "Init:Signal:15", "0"},
		{"init says why", "i", `{phase: Pending, initContainerStatuses: [{name: i, restartCount: 0, state: {terminated: {exitCode: 1, reason: OOMKilled}}}]}`, "0/2", "Init:OOMKilled", "0"},
		{
			"sidecar", "s", `{phase: Running, initContainerStatuses: [{name: s, restartCount: 3, started: true, ready: true, state: {running: {}}}], containerStatuses: [` + running + `]}`,
			"2/3", "Running", "3",
		},
		{
			"restarts of init containers are not counted", "i",
			`{phase: Running, initContainerStatuses: [{name: i, restartCount: 3, state: {terminated: {exitCode: 0}}}], containerStatuses: [` + running + `]}`, "1/2", "Running", "0",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := `containers: [{name: a}, {name: b}]`
			switch test.spec {
			case "i":
				spec += `, initContainers: [{name: i}, {name: j}]`
			case "s":
				spec += `, initContainers: [{name: s, restartPolicy: Always}]`
			}
			status := test.status
			if status[0] != '{' {
				status = "{" + status + "}"
			}
			pod := treeOf(t, `{metadata: {name: p}, spec: {`+spec+`}, status: `+status+`}`)
			for column, want := range map[string]any{"ready": test.ready, "status": test.says, "restarts": test.restarts} {
				if got := podCells[column](pod); got != want {
					t.Errorf("%s: got %v, want %v", column, got, want)
				}
			}
		})
	}
}

// A pod in deletion is Terminating unless it has ended, and Unknown on a lost node.
func TestDeletionShows(t *testing.T) {
	for status, want := range map[string]string{
		`{phase: Running}`:                   "Terminating",
		`{phase: Succeeded}`:                 "Succeeded",
		`{phase: Running, reason: NodeLost}`: "Unknown",
	} {
		pod := treeOf(t, `{metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}, status: `+status+`}`)
		if got := podCells["status"](pod); got != want {
			t.Errorf("%s: got %v, want %s", status, got, want)
		}
	}
}

func TestMoreColumns(t *testing.T) {
	for _, test := range []struct{ column, pod, want string }{
		{"ip", `{}`, "<none>"},
		{"ip", `{status: {podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}]}}`, "10.0.0.1"},
		{"gates", `{}`, "<none>"},
		{
			"gates", `{spec: {readinessGates: [{conditionType: a}, {conditionType: b}, {conditionType: c}]}, status: {conditions: [{type: b, status: "False"}, {type: a, status: "True"}]}}`,
			"1/3",
		},
	} {
		if got := podCells[test.column](treeOf(t, test.pod)); got != test.want {
			t.Errorf("%s of %s: got %v, want %s", test.column, test.pod, got, test.want)
		}
	}
	if got := rowConditions(treeOf(t, `{status: {phase: Failed}}`)); len(got) != 1 || got[0].Reason != "Failed" || got[0].Message != "The pod failed." {
		t.Errorf("a pod that has failed: %+v", got)
	}
	if got := rowConditions(treeOf(t, `{status: {phase: Running}}`)); got != nil {
		t.Errorf("a running pod: %+v", got)
	}
}

func BenchmarkStatusOfPods(b *testing.B) {
	pod := treeOf(b, `{spec: {containers: [{name: a}, {name: b}], initContainers: [{name: s, restartPolicy: Always}]}, status: {phase: Running,
		initContainerStatuses: [{name: s, started: true, ready: true, restartCount: 0, state: {running: {}}}],
		containerStatuses: [{name: a, ready: true, restartCount: 0, state: {running: {}}}, {name: b, ready: true, restartCount: 0, state: {running: {}}}]}}`)
	for b.Loop() {
		for _, cell := range []string{"ready", "status", "restarts"} {
			podCells[cell](pod)
		}
	}
}
