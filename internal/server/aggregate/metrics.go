package aggregate

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics reports unavailable APIServices, under Kubernetes' names.
type Metrics struct {
	services func(context.Context) *Services
	state    *prometheus.Desc
	changes  *prometheus.CounterVec
}

func newMetrics(services func(context.Context) *Services) *Metrics {
	return &Metrics{
		services: services,
		state: prometheus.NewDesc("aggregator_unavailable_apiservice",
			"Availability of APIServices, by name: 1 if unavailable.", []string{"name"}, nil),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggregator_unavailable_apiservice_total",
			Help: "Changes of APIServices to unavailable, by name and reason.",
		}, []string{"name", "reason"}),
	}
}

// BecameUnavailable counts a transition of an APIService to unavailable.
func (m *Metrics) BecameUnavailable(name, reason string) {
	m.changes.WithLabelValues(name, reason).Inc()
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector { return []prometheus.Collector{m} }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.state
	m.changes.Describe(to)
}

// Collect implements prometheus.Collector. Its wait for the store is short, so that a scrape is
// not delayed.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, g := range m.services(ctx).Groups() {
		for _, s := range g.Versions {
			value := 1.0
			if s.Available {
				value = 0
			}
			to <- prometheus.MustNewConstMetric(m.state, prometheus.GaugeValue, value, s.Name)
		}
	}
	m.changes.Collect(to)
}
