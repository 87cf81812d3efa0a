package podsecurity

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/pod-security-admission/api"

	"github.com/anykind/anykind/internal/registry"
)

// Metrics count evaluations of Pod Security Standards, under the metric names of Kubernetes.
type Metrics struct{ evaluations, exemptions, errors *prometheus.CounterVec }

// NewMetrics returns Metrics that count from zero.
func NewMetrics() *Metrics {
	about := []string{"request_operation", "resource", "subresource"}
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(labels, about...))
	}
	m := &Metrics{
		evaluations: count("pod_security_evaluations_total", "Evaluations of pods and pod templates by a Pod Security Standard, without exempt ones.",
			"decision", "policy_level", "policy_version", "mode"),
		exemptions: count("pod_security_exemptions_total", "Requests exempt from Pod Security Standards."),
		errors: count("pod_security_errors_total", "Errors that prevented a regular evaluation. After one that is not fatal, the restricted level may apply instead of the configured one.",
			"fatal"),
	}
	// The common series exist from the start, so that a rate has a first value.
	for _, operation := range []string{"create", "update"} {
		m.evaluations.WithLabelValues("allow", string(api.LevelPrivileged), api.VersionLatest, "enforce", operation, "pod", "")
		for _, of := range []string{"pod", "controller"} {
			m.exemptions.WithLabelValues(operation, of, "")
		}
	}
	return m
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.evaluations, m.exemptions, m.errors}
}

func (m *Metrics) evaluated(a *registry.Admission, is api.LevelVersion, mode, decision string) {
	m.evaluations.WithLabelValues(append([]string{decision, string(is.Level), versionOf(is), mode}, about(a)...)...).Inc()
}

func (m *Metrics) exempted(a *registry.Admission) { m.exemptions.WithLabelValues(about(a)...).Inc() }

func (m *Metrics) failed(a *registry.Admission, fatal bool) {
	m.errors.WithLabelValues(append([]string{strconv.FormatBool(fatal)}, about(a)...)...).Inc()
}

// about returns the labels of a request. A resource other than pods and namespaces counts as a
// controller.
func about(a *registry.Admission) []string {
	of := "controller"
	switch d := a.Target.Definition; {
	case d.Group == "" && d.Plural == "pods":
		of = "pod"
	case d.Group == "" && d.Plural == "namespaces":
		of = "namespace"
	}
	return []string{strings.ToLower(string(a.Operation)), of, a.Target.Subresource}
}

// release is the newest minor version that has its own label value.
const release = 37

// versionOf returns a label value, from a bounded set of versions.
func versionOf(is api.LevelVersion) string {
	newest := api.MajorMinorVersion(1, release)
	switch {
	case is.Level == api.LevelPrivileged, is.Version.Latest():
		return api.VersionLatest
	case newest.Older(is.Version):
		return "future"
	}
	return is.Version.String()
}
