package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/registry"
)

// Metrics count calls of admission webhooks, under the metric names of Kubernetes.
type Metrics struct {
	durations                   *prometheus.HistogramVec
	requests, rejections, opens *prometheus.CounterVec
	conditions                  *match.Metrics // also of policies
}

// NewMetrics returns Metrics that count from zero. Match conditions are counted in conditions.
func NewMetrics(conditions *match.Metrics) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "apiserver", Subsystem: "admission", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "apiserver", Subsystem: "admission", Name: name, Help: help, Buckets: buckets}, labels)
	}
	return &Metrics{
		durations: histogram("webhook_admission_duration_seconds", "Duration of calls of admission webhooks in seconds.",
			[]float64{0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25}, "name", "type", "operation", "rejected"),
		requests: counter("webhook_request_total", "Calls of admission webhooks, by response code.",
			"name", "type", "operation", "code", "rejected"),
		rejections: counter("webhook_rejection_count", "Requests rejected because of an admission webhook, by reason.",
			"name", "type", "operation", "error_type", "rejection_code"),
		opens: counter("webhook_fail_open_count", "Failed calls of admission webhooks whose failurePolicy is Ignore.",
			"name", "type"),
		conditions: conditions,
	}
}

// Collectors returns the collectors to register, without those of match conditions.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.durations, m.requests, m.rejections, m.opens}
}

// maxCode is the largest code in a label. It bounds the number of series that a webhook can cause.
const maxCode = 600

func (m *Metrics) observe(h *hook, kind string, operation registry.Operation, took time.Duration, code int, rejected bool) {
	label := strconv.FormatBool(rejected)
	m.requests.WithLabelValues(h.name, kind, string(operation), strconv.Itoa(min(code, maxCode)), label).Inc()
	m.durations.WithLabelValues(h.name, kind, string(operation), label).Observe(took.Seconds())
}

func (m *Metrics) reject(h *hook, kind string, operation registry.Operation, reason string, code int) {
	m.rejections.WithLabelValues(h.name, kind, string(operation), reason, strconv.Itoa(min(code, maxCode))).Inc()
}

// answered counts an allowed write.
func (m *Metrics) answered(h *hook, kind string, operation registry.Operation, took time.Duration) {
	m.observe(h, kind, operation, took, 200, false)
}

func (m *Metrics) refused(h *hook, kind string, operation registry.Operation, took time.Duration, code int) {
	m.reject(h, kind, operation, "no_error", code)
	m.observe(h, kind, operation, took, code, true)
}

// broken counts an error that is neither a rejection nor a failed call.
func (m *Metrics) broken(h *hook, kind string, operation registry.Operation, took time.Duration) {
	m.reject(h, kind, operation, "apiserver_internal_error", 0)
	m.observe(h, kind, operation, took, 0, true)
}

// failed counts a failed call, which the client may have canceled.
func (m *Metrics) failed(h *hook, kind string, operation registry.Operation, took time.Duration, code int, givenUp bool) {
	if !h.ignore && !givenUp {
		m.reject(h, kind, operation, "calling_webhook_error", code)
	}
	m.observe(h, kind, operation, took, code, !h.ignore)
}

// opened counts a write that the failure policy Ignore allowed.
func (m *Metrics) opened(h *hook, kind string) { m.opens.WithLabelValues(h.name, kind).Inc() }

// condition counts the evaluation of the match conditions of a webhook.
func (m *Metrics) condition(h *hook, kind string, operation registry.Operation, took time.Duration, matches bool, broken int, err error) {
	asked := match.ConditionsOf{Name: h.name, Kind: "webhook", Type: kind, Operation: operation}
	m.conditions.Evaluated(asked, took, broken)
	if err == nil && !matches {
		m.conditions.Excluded(asked)
	}
}
