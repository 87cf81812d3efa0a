package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// checkRuntime validates the probes and lifecycle hooks of a container that is not an init
// container, or is a sidecar.
func checkRuntime(c *rule.Check, x *corev1.Container, spec *corev1.PodSpec) {
	grace := spec.TerminationGracePeriodSeconds
	if x.Lifecycle != nil {
		checkLifecycle(c.At("lifecycle", "postStart"), x.Lifecycle.PostStart, grace)
		checkLifecycle(c.At("lifecycle", "preStop"), x.Lifecycle.PreStop, grace)
		checkStopSignal(c.At("lifecycle", "stopSignal"), x.Lifecycle.StopSignal, spec.OS)
	}
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", x.LivenessProbe}, {"readinessProbe", x.ReadinessProbe}, {"startupProbe", x.StartupProbe}} {
		if p.probe == nil {
			continue
		}
		at, ofReadiness := c.At(p.name), p.name == "readinessProbe"
		at.Walk(p.probe)
		if p.probe.SuccessThreshold != 1 && !ofReadiness {
			at.At("successThreshold").Invalid(p.probe.SuccessThreshold, "must be 1")
		}
		if grace := p.probe.TerminationGracePeriodSeconds; grace != nil && ofReadiness {
			at.At("terminationGracePeriodSeconds").Invalid(grace, "must not be set for readinessProbes")
		}
	}
}

func checkProbe(c *rule.Check, p *corev1.Probe) {
	checkHandler(c, handler{p.Exec, p.HTTPGet, p.TCPSocket, p.GRPC, nil}, nil)
}

func checkLifecycle(c *rule.Check, h *corev1.LifecycleHandler, grace *int64) {
	if h != nil {
		checkHandler(c, handler{h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep}, grace)
	}
}

// checkStopSignal validates a signal. Windows has two of them.
func checkStopSignal(c *rule.Check, signal *corev1.Signal, os *corev1.PodOS) {
	switch {
	case signal == nil:
	case os == nil:
		c.Forbidden("may not be set for containers with empty `spec.os.name`")
	case os.Name == corev1.Windows:
		known(c, *signal, corev1.SIGKILL, corev1.SIGTERM)
	case os.Name == corev1.Linux:
		known(c, string(*signal), rule.EnumOf[corev1.Lifecycle]("stopSignal")...)
	}
}

// A handler is the action of a probe or a lifecycle hook: one of these.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func checkHandler(c *rule.Check, h handler, grace *int64) {
	handlers := 0
	// first reports whether an action is present and is the first one.
	first := func(name string, isThere bool) bool {
		if isThere {
			handlers++
		}
		if isThere && handlers > 1 {
			c.At(name).Forbidden("may not specify more than 1 handler type")
		}
		return isThere && handlers == 1
	}
	if first("exec", h.exec != nil) && len(h.exec.Command) == 0 {
		c.At("exec", "command").Required("")
	}
	if first("httpGet", h.http != nil) {
		checkHTTPGet(c.At("httpGet"), h.http)
	}
	if first("tcpSocket", h.tcp != nil) {
		checkPort(c.At("tcpSocket", "port"), h.tcp.Port)
	}
	if first("grpc", h.grpc != nil) {
		checkPort(c.At("grpc", "port"), intstr.FromInt32(h.grpc.Port))
		if mode := h.grpc.Mode; mode != nil { // a disabled feature: the old object has it
			known(c.At("grpc", "mode"), *mode, corev1.GRPCProbeModePlaintext, corev1.GRPCProbeModeTLS)
		}
	}
	if first("sleep", h.sleep != nil) && grace != nil && (h.sleep.Seconds < 0 || h.sleep.Seconds > *grace) {
		c.At("sleep").Invalid(h.sleep.Seconds,
			fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace))
	}
	if handlers == 0 {
		c.Required("must specify a handler type")
	}
}

func checkHTTPGet(c *rule.Check, h *corev1.HTTPGetAction) {
	checkPort(c.At("port"), h.Port)
	known(c.At("scheme"), h.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	for _, header := range h.HTTPHeaders {
		c.At("httpHeaders").Invalids(header.Name, validation.IsHTTPHeaderName(header.Name))
	}
	switch protocol := h.Protocol; {
	case protocol == nil: // a disabled feature: only old objects have it
	case !known(c.At("protocol"), *protocol, corev1.HTTPProtocolHTTP1, corev1.HTTPProtocolHTTP2), *protocol != corev1.HTTPProtocolHTTP2:
	case h.Scheme != corev1.URISchemeHTTP:
		c.At("protocol").Invalid(*protocol, "is only supported with HTTP (H2C)")
	case h.Host != "":
		c.At("host").Invalid(h.Host, `must be empty when `+"`protocol`"+` is "HTTP2"`)
	}
}

func checkPort(c *rule.Check, port intstr.IntOrString) {
	if port.Type == intstr.String {
		c.Invalids(port.StrVal, validation.IsValidPortName(port.StrVal))
		return
	}
	c.Invalids(int(port.IntVal), validation.IsValidPortNum(int(port.IntVal)))
}
