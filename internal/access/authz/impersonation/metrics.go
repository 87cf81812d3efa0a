package impersonation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/histogram"
)

// metrics count impersonated requests and their authorization checks, under the names of Kubernetes.
type metrics struct {
	attempts, questions         *prometheus.CounterVec
	attemptsTook, questionsTook *prometheus.HistogramVec
}

func newMetrics(gates *gate.Set) *metrics {
	const prefix = "apiserver_impersonation_"
	labels := []string{"mode", "decision"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	newHistogram := func(name, help string) *prometheus.HistogramVec {
		return histogram.NewVec(gates, prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(.001, 2, 15)}, labels)
	}
	return &metrics{
		attempts:      counter("attempts_total", "Impersonation attempts, by mode and decision."),
		attemptsTook:  newHistogram("attempts_duration_seconds", "Duration of impersonation attempts in seconds, by mode and decision."),
		questions:     counter("authorization_attempts_total", "Authorization checks for impersonation, by mode and decision."),
		questionsTook: newHistogram("authorization_attempts_duration_seconds", "Duration of authorization checks for impersonation in seconds, by mode and decision."),
	}
}

// Collectors returns the collectors to register.
func (i *Impersonator) Collectors() []prometheus.Collector {
	m := i.metrics
	return []prometheus.Collector{m.attempts, m.attemptsTook, m.questions, m.questionsTook}
}

// attempted counts a request that a mode allowed, or, with a nil mode, that all denied.
func (m *metrics) attempted(in *mode, begun time.Time) {
	name := ""
	if in != nil {
		name = in.metricName()
	}
	labels := []string{name, decision(in != nil)}
	m.attempts.WithLabelValues(labels...).Inc()
	m.attemptsTook.WithLabelValues(labels...).Observe(time.Since(begun).Seconds())
}

// authorized counts one call of the authorizer.
func (m *metrics) authorized(in *mode, allowed bool, begun time.Time) {
	labels := []string{in.metricName(), decision(allowed)}
	m.questions.WithLabelValues(labels...).Inc()
	m.questionsTook.WithLabelValues(labels...).Observe(time.Since(begun).Seconds())
}

func decision(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

// metricName returns the name of the mode in metrics.
func (m *mode) metricName() string {
	if !m.constrained() {
		return "legacy"
	}
	return m.name
}
