package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
)

// defaultSpec sets the defaults that depend on other fields of a spec. The table has constants.
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

// defaultPod sets the defaults of a pod that a template does not have.
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

// defaultProtocols returns a function that sets missing protocols of the HTTP requests to the containers of a pod; nil without the gate.
func defaultProtocols(gates *gate.Set) func(pod map[string]any) {
	if !gates.On(gate.H2CContainerProbe) {
		return nil
	}
	return func(pod map[string]any) {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			for _, c := range kind.List(kind.Tree(pod, "spec"), list) {
				for _, path := range [][]string{{"livenessProbe"}, {"readinessProbe"}, {"startupProbe"}, {"lifecycle", "postStart"}, {"lifecycle", "preStop"}} {
					if request := kind.Tree(kind.Tree(asTree(c), path...), "httpGet"); request != nil {
						kind.SetMissing(request, "protocol", string(corev1.HTTPProtocolHTTP1))
					}
				}
			}
		}
	}
}

// requestLimits sets missing requests of a container to its limits.
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

// publishPorts sets missing host ports to the container ports.
func publishPorts(container map[string]any) {
	for _, p := range kind.List(container, "ports") {
		port := asTree(p)
		if n := number(port, "containerPort"); n != 0 && number(port, "hostPort") == 0 {
			port["hostPort"] = n
		}
	}
}

// defaultStatus sets podIP to the first of podIPs, unless podIP is set.
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
