package convert

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count the calls of conversion webhooks, under Kubernetes' metric names.
type Metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

// NewMetrics returns Metrics that count from zero.
func NewMetrics() *Metrics {
	names := []string{"result", "failure_type"}
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_conversion_webhook_request_total",
			Help: "Calls of conversion webhooks, by result and failure type.",
		}, names),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_conversion_webhook_duration_seconds",
			Help:    "Duration of calls of conversion webhooks in seconds, by result and failure type.",
			Buckets: []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60},
		}, names),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.durations}
}

func (m *Metrics) observe(start time.Time, err error) {
	if m == nil {
		return
	}
	result, sort := "success", ""
	if err != nil {
		result, sort = "failure", sortOf(err)
	}
	m.requests.WithLabelValues(result, sort).Inc()
	m.durations.WithLabelValues(result, sort).Observe(time.Since(start).Seconds())
}
