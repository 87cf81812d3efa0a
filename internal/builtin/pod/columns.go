package pod

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/view"
)

const podColumns = `
	Ready            string       ready     "The aggregate readiness state of this pod for accepting traffic."
	Status           string       status    "The aggregate status of the containers in this pod."
	Restarts         string       restarts  "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."
	Age
	IP               string wide  ip        .status.podIP
	Node             string wide  .spec.nodeName:<none>
	Nominated Node   string wide  .status.nominatedNodeName:<none>
	Readiness Gates  string wide  gates     .spec.readinessGates
`

var podCells = kind.Cells{
	"ready": func(pod map[string]any) any {
		s := summarize(pod)
		return strconv.Itoa(s.ready) + "/" + strconv.Itoa(s.total)
	},
	"status":   func(pod map[string]any) any { return summarize(pod).status },
	"restarts": restarts,
	"ip": func(pod map[string]any) any {
		if ips := kind.List(pod, "status", "podIPs"); len(ips) > 0 {
			if ip := kind.Text(asTree(ips[0]), "ip"); ip != "" {
				return ip
			}
		}
		return "<none>"
	},
	"gates": readinessGates,
}

// rowConditions returns the row condition of a terminated pod.
func rowConditions(pod map[string]any) []metav1.TableRowCondition {
	phase := kind.Text(pod, "status", "phase")
	messages := map[string]string{string(corev1.PodSucceeded): "The pod has completed successfully.", string(corev1.PodFailed): "The pod failed."}
	if messages[phase] == "" {
		return nil
	}
	return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: phase, Message: messages[phase]}}
}

func restarts(pod map[string]any) any {
	s := summarize(pod)
	n := strconv.FormatInt(s.restarts, 10)
	if s.restarts == 0 || s.lastRestart == "" {
		return n
	}
	return view.TextWithAge{Before: n + " (", At: view.Age(s.lastRestart), After: " ago)"}
}

func readinessGates(pod map[string]any) any {
	gates, met := kind.List(pod, "spec", "readinessGates"), 0
	if len(gates) == 0 {
		return "<none>"
	}
	for _, g := range gates {
		if conditionStatus(pod, kind.Text(asTree(g), "conditionType")) == string(corev1.ConditionTrue) {
			met++
		}
	}
	return fmt.Sprintf("%d/%d", met, len(gates))
}

// conditionStatus returns the status of the first condition of a type, or "".
func conditionStatus(pod map[string]any, conditionType string) string {
	for _, c := range kind.List(pod, "status", "conditions") {
		if c := asTree(c); kind.Text(c, "type") == conditionType {
			return kind.Text(c, "status")
		}
	}
	return ""
}

// A summary aggregates the state of all containers for the columns.
type summary struct {
	ready, total int
	status       string
	restarts     int64
	lastRestart  string // a timestamp
}

// restarted adds the restarts of a container.
func (s *summary) restarted(container map[string]any) {
	n, _ := container["restartCount"].(int64)
	s.restarts += n
	// Timestamps in canonical form sort as texts.
	s.lastRestart = max(s.lastRestart, kind.Text(container, "lastState", "terminated", "finishedAt"))
}

// summarize computes the columns as kubectl shows them. The reason is that of the first init
// container that is not finished, otherwise of the first other container with a reason.
func summarize(pod map[string]any) summary {
	status := kind.Tree(pod, "status")
	s := summary{total: len(kind.List(pod, "spec", "containers")), status: kind.Text(status, "phase")}
	if reason := kind.Text(status, "reason"); reason != "" {
		s.status = reason
	}
	for _, c := range kind.List(status, "conditions") {
		if c := asTree(c); kind.Text(c, "type") == string(corev1.PodScheduled) && kind.Text(c, "reason") == corev1.PodReasonSchedulingGated {
			s.status = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for _, c := range kind.List(pod, "spec", "initContainers") {
		if c := asTree(c); kind.Text(c, "restartPolicy") == string(corev1.ContainerRestartPolicyAlways) {
			sidecars[kind.Text(c, "name")] = true
			s.total++
		}
	}
	ofSidecars := summary{}
	waits := s.initialize(pod, sidecars, &ofSidecars)
	if !waits || conditionStatus(pod, string(corev1.PodInitialized)) == string(corev1.ConditionTrue) {
		s.restarts, s.lastRestart = ofSidecars.restarts, ofSidecars.lastRestart
		s.run(pod)
	}
	if !object.Deleting(pod) {
		return s
	}
	switch phase := corev1.PodPhase(kind.Text(status, "phase")); {
	case kind.Text(status, "reason") == "NodeLost":
		s.status = "Unknown"
	case phase != corev1.PodFailed && phase != corev1.PodSucceeded:
		s.status = "Terminating"
	}
	return s
}

// initialize processes the init containers, and reports whether the pod waits for one.
func (s *summary) initialize(pod map[string]any, sidecars map[string]bool, ofSidecars *summary) (waits bool) {
	for i, c := range kind.List(pod, "status", "initContainerStatuses") {
		container := asTree(c)
		sidecar := sidecars[kind.Text(container, "name")]
		s.restarted(container)
		if sidecar {
			ofSidecars.restarted(container)
		}
		terminated, waiting := kind.Tree(container, "state", "terminated"), kind.Text(container, "state", "waiting", "reason")
		switch {
		case terminated != nil && number(terminated, "exitCode") == 0:
		case sidecar && container["started"] == true:
			if container["ready"] == true {
				s.ready++
			}
		case terminated != nil:
			s.status = "Init:" + ending(terminated)
			return true
		case waiting != "" && waiting != "PodInitializing":
			s.status = "Init:" + waiting
			return true
		default:
			s.status = fmt.Sprintf("Init:%d/%d", i, len(kind.List(pod, "spec", "initContainers")))
			return true
		}
	}
	return false
}

// run processes the main containers.
func (s *summary) run(pod map[string]any) {
	running, failure := false, ""
	containers := kind.List(pod, "status", "containerStatuses")
	for i := len(containers) - 1; i >= 0; i-- {
		container := asTree(containers[i])
		s.restarted(container)
		state := kind.Tree(container, "state")
		terminated, waiting := kind.Tree(state, "terminated"), kind.Text(state, "waiting", "reason")
		switch {
		case waiting != "":
			s.status = waiting
		case terminated != nil:
			s.status = ending(terminated)
			if number(terminated, "exitCode") != 0 {
				failure = s.status
			}
		case container["ready"] == true && kind.Tree(state, "running") != nil:
			running = true
			s.ready++
		}
	}
	switch {
	case s.status != "Completed":
	case running && conditionStatus(pod, string(corev1.PodReady)) == string(corev1.ConditionTrue):
		s.status = "Running"
	case failure != "":
		s.status = failure
	case running:
		s.status = "NotReady"
	}
}

// ending returns the reason of a terminated container.
func ending(terminated map[string]any) string {
	if reason := kind.Text(terminated, "reason"); reason != "" {
		return reason
	}
	if signal := number(terminated, "signal"); signal != 0 {
		return fmt.Sprintf("Signal:%d", signal)
	}
	return fmt.Sprintf("ExitCode:%d", number(terminated, "exitCode"))
}

func number(obj map[string]any, name string) int64 {
	n, _ := obj[name].(int64)
	return n
}

func asTree(v any) map[string]any {
	t, _ := v.(map[string]any)
	return t
}
