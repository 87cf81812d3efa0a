package podsecurity

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/pod-security-admission/api"

	"github.com/anykind/anykind/internal/registry"
)

// Metrics count what was held against standards, under the names that Kubernetes has for them.
type Metrics struct{ evaluations, exemptions, errors *prometheus.CounterVec }

// NewMetrics returns Metrics that count from zero.
func NewMetrics() *Metrics {
	about := []string{"request_operation", "resource", "subresource"}
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(labels, about...))
	}
	m := &Metrics{
		evaluations: count("pod_security_evaluations_total", "Pods and templates of pods that were held against a standard, without those that are exempt.",
			"decision", "policy_level", "policy_version", "mode"),
		exemptions: count("pod_security_exemptions_total", "Requests that are exempt from all standards."),
		errors: count("pod_security_errors_total", "Errors that were in the way. Those that are not fatal may have had the strictest standard in place of the one that is meant.",
			"fatal"),
	}
	// What is usual is there before the first of it, so that a rate can be taken.
	for _, operation := range []string{"create", "update"} {
		m.evaluations.WithLabelValues("allow", string(api.LevelPrivileged), api.VersionLatest, "enforce", operation, "pod", "")
		for _, of := range []string{"pod", "controller"} {
			m.exemptions.WithLabelValues(operation, of, "")
		}
	}
	return m
}

// Collectors are what is to be registered.
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

// about says which request it was. What is neither a pod nor a namespace makes pods.
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

// release is the newest version of which standards are known by name.
const release = 37

// versionOf returns a version of which there are not too many.
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
