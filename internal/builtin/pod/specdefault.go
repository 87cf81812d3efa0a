package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
)

// defaultSpec fills in what depends on other fields of a spec. Constants are in the table.
func defaultSpec(spec map[string]any) {
	account := kind.Text(spec, "serviceAccountName")
	if account == "" {
		account = kind.Text(spec, "serviceAccount")
	}
	if account != "" {
		spec["serviceAccountName"], spec["serviceAccount"] = account, account
	}
	if spec["securityContext"] == nil {
		spec["securityContext"] = map[string]any{}
	}
}

// defaultPod fills in what a pod has, but not a template.
func defaultPod(pod map[string]any) {
	spec := kind.Child(pod, "spec")
	if number(spec, "terminationGracePeriodSeconds") < 0 {
		spec["terminationGracePeriodSeconds"] = int64(1)
	}
	kind.SetMissing(spec, "enableServiceLinks", corev1.DefaultEnableServiceLinks)
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range kind.List(spec, list) {
			container := asTree(c)
			requestLimits(container)
			if spec["hostNetwork"] == true {
				publishPorts(container)
			}
		}
	}
}

// requestLimits requests what a container is limited to, where it says nothing else.
func requestLimits(container map[string]any) {
	limits := kind.Tree(container, "resources", "limits")
	if len(limits) == 0 {
		return
	}
	requests := kind.Child(kind.Tree(container, "resources"), "requests")
	for name, quantity := range limits {
		kind.SetMissing(requests, name, quantity)
	}
}

// publishPorts gives ports of a container the same number on its host.
func publishPorts(container map[string]any) {
	for _, p := range kind.List(container, "ports") {
		port := asTree(p)
		if n := number(port, "containerPort"); n != 0 && number(port, "hostPort") == 0 {
			port["hostPort"] = n
		}
	}
}

// defaultStatus makes podIP the first of podIPs. Who says another podIP means it.
func defaultStatus(status map[string]any) {
	ip, ips := kind.Text(status, "podIP"), kind.List(status, "podIPs")
	switch {
	case ip == "" && len(ips) > 0:
		if first := kind.Text(asTree(ips[0]), "ip"); first != "" {
			status["podIP"] = first
		}
	case ip != "" && (len(ips) == 0 || kind.Text(asTree(ips[0]), "ip") != ip):
		status["podIPs"] = []any{map[string]any{"ip": ip}}
	}
}
