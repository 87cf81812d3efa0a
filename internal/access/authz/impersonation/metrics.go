package impersonation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count who wanted to be somebody else, and what was asked about that, under the names that
// Kubernetes has for them.
type metrics struct {
	attempts, questions         *prometheus.CounterVec
	attemptsTook, questionsTook *prometheus.HistogramVec
}

func newMetrics() *metrics {
	const prefix = "apiserver_impersonation_"
	labels := []string{"mode", "decision"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(.001, 2, 15)}, labels)
	}
	return &metrics{
		attempts:      counter("attempts_total", "Impersonation attempts, by mode and decision."),
		attemptsTook:  histogram("attempts_duration_seconds", "Duration of impersonation attempts, by mode and decision."),
		questions:     counter("authorization_attempts_total", "Authorizations of impersonation, by mode and decision."),
		questionsTook: histogram("authorization_attempts_duration_seconds", "Duration of authorizations of impersonation, by mode and decision."),
	}
}

// Collectors are the metrics that are to be registered.
func (i *Impersonator) Collectors() []prometheus.Collector {
	m := i.metrics
	return []prometheus.Collector{m.attempts, m.attemptsTook, m.questions, m.questionsTook}
}

// attempted counts a request that was allowed in a mode, or refused in all, which is nil.
func (m *metrics) attempted(in *mode, begun time.Time) {
	name := ""
	if in != nil {
		name = in.told()
	}
	labels := []string{name, decision(in != nil)}
	m.attempts.WithLabelValues(labels...).Inc()
	m.attemptsTook.WithLabelValues(labels...).Observe(time.Since(begun).Seconds())
}

// asked counts one question to the authorizer.
func (m *metrics) asked(in *mode, allowed bool, begun time.Time) {
	labels := []string{in.told(), decision(allowed)}
	m.questions.WithLabelValues(labels...).Inc()
	m.questionsTook.WithLabelValues(labels...).Observe(time.Since(begun).Seconds())
}

func decision(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

// told is what metrics call the mode.
func (m *mode) told() string {
	if !m.constrained() {
		return "legacy"
	}
	return m.name
}
