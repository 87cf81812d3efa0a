package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Metrics counts calls of webhooks and evaluations of match conditions, under the names of
// Kubernetes.
type Metrics struct {
	evaluations, failedOpen *prometheus.CounterVec
	duration                *prometheus.HistogramVec

	matchErrors, exclusions *prometheus.CounterVec
	matching                *prometheus.HistogramVec
}

// NewMetrics returns the Metrics of all webhooks of a server.
func NewMetrics() *Metrics {
	const prefix = "apiserver_authorization_"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	}
	return &Metrics{
		evaluations: counter("webhook_evaluations_total", "Calls of authorization webhooks, by name and result.", "name", "result"),
		failedOpen:  counter("webhook_evaluations_fail_open_total", "Failed calls of authorization webhooks that fail open (NoOpinion), by name and result.", "name", "result"),
		duration:    histogram("webhook_duration_seconds", "Duration of calls of authorization webhooks in seconds, by name and result.", prometheus.DefBuckets, "name", "result"),
		matchErrors: counter("match_condition_evaluation_errors_total", "Match conditions of authorization webhooks that failed, by type and name.", "type", "name"),
		exclusions:  counter("match_condition_exclusions_total", "Requests that the match conditions of an authorization webhook excluded, by type and name.", "type", "name"),
		matching: histogram("match_condition_evaluation_seconds", "Duration of the match conditions of authorization webhooks in seconds, by type and name.",
			[]float64{.001, .005, .01, .025, .1, .2, .25}, "type", "name"),
	}
}

// Collectors returns the collectors to register; none for nil.
func (m *Metrics) Collectors() []prometheus.Collector {
	if m == nil {
		return nil
	}
	return []prometheus.Collector{m.evaluations, m.failedOpen, m.duration, m.matchErrors, m.exclusions, m.matching}
}

// Called records the result of a call.
func (m *Metrics) Called(ctx context.Context, name string, took time.Duration, err error) {
	result := resultOf(err)
	if err != nil && ctx.Err() != nil {
		result = "canceled"
	}
	m.evaluations.WithLabelValues(name, result).Inc()
	m.duration.WithLabelValues(name, result).Observe(took.Seconds())
}

// FailedOpen records that a failed call became no opinion.
func (m *Metrics) FailedOpen(name string, err error) {
	m.failedOpen.WithLabelValues(name, resultOf(err)).Inc()
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return "success"
	case utilnet.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err):
		return "timeout"
	default:
		return "error"
	}
}

// RecordAuthorizationMatchConditionEvaluation records the duration of match conditions.
func (m *Metrics) RecordAuthorizationMatchConditionEvaluation(_ context.Context, of, name string, took time.Duration) {
	m.matching.WithLabelValues(of, name).Observe(took.Seconds())
}

// RecordAuthorizationMatchConditionEvaluationFailure records a failure of match conditions.
func (m *Metrics) RecordAuthorizationMatchConditionEvaluationFailure(_ context.Context, of, name string) {
	m.matchErrors.WithLabelValues(of, name).Inc()
}

// RecordAuthorizationMatchConditionExclusion records that match conditions excluded a request.
func (m *Metrics) RecordAuthorizationMatchConditionExclusion(_ context.Context, of, name string) {
	m.exclusions.WithLabelValues(of, name).Inc()
}
