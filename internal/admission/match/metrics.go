package match

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/registry"
)

// Metrics count match conditions of webhooks and policies, under the metric names of Kubernetes.
type Metrics struct {
	evaluations       *prometheus.HistogramVec
	errors, exclusion *prometheus.CounterVec
}

// ConditionsOf identifies the owner of match conditions: its name, its kind ("webhook" or
// "policy"), the type of admission, and the operation.
type ConditionsOf struct {
	Name, Kind, Type string
	Operation        registry.Operation
}

// NewMetrics returns Metrics that count from zero.
func NewMetrics() *Metrics {
	labels := []string{"name", "kind", "type", "operation"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "apiserver", Subsystem: "admission", Name: name, Help: help}, labels)
	}
	return &Metrics{
		evaluations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "apiserver", Subsystem: "admission", Name: "match_condition_evaluation_seconds", Help: "Duration of the evaluation of match conditions in seconds.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25},
		}, labels),
		errors:    counter("match_condition_evaluation_errors_total", "Match conditions that failed with an error."),
		exclusion: counter("match_condition_exclusions_total", "Requests that match conditions excluded."),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.evaluations, m.errors, m.exclusion}
}

func (a *ConditionsOf) labels() []string {
	return []string{a.Name, a.Kind, a.Type, string(a.Operation)}
}

// Evaluated counts an evaluation of all conditions, and the number of errors.
func (m *Metrics) Evaluated(a ConditionsOf, took time.Duration, broken int) {
	m.evaluations.WithLabelValues(a.labels()...).Observe(took.Seconds())
	if broken > 0 {
		m.errors.WithLabelValues(a.labels()...).Add(float64(broken))
	}
}

// Excluded counts a write that its match conditions exclude.
func (m *Metrics) Excluded(a ConditionsOf) { m.exclusion.WithLabelValues(a.labels()...).Inc() }
