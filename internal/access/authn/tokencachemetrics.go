package authn

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TokenCacheMetrics counts the lookups of all TokenCaches of a server, and the calls behind them,
// under the names of Kubernetes.
type TokenCacheMetrics struct {
	requests, fetches *prometheus.CounterVec
	durations         *prometheus.HistogramVec
	active            *prometheus.GaugeVec
}

// NewTokenCacheMetrics returns the metrics of a server.
func NewTokenCacheMetrics() *TokenCacheMetrics {
	const prefix = "authentication_token_cache_"
	status := []string{"status"}
	return &TokenCacheMetrics{
		requests:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "request_total", Help: "Token lookups in the cache, by hit or miss."}, status),
		fetches:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "fetch_total", Help: "Calls to token authenticators, by outcome."}, status),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "request_duration_seconds", Help: "Duration of token lookups in seconds, by hit or miss."}, status),
		active:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "active_fetch_count", Help: "Calls to token authenticators in progress, and requests that wait for them."}, status),
	}
}

// Collectors returns the collectors to register; none for nil.
func (m *TokenCacheMetrics) Collectors() []prometheus.Collector {
	if m == nil {
		return nil
	}
	return []prometheus.Collector{m.requests, m.fetches, m.durations, m.active}
}

// looked counts a lookup that began at a time. had reports a cache hit.
func (m *TokenCacheMetrics) looked(begun time.Time, had bool) {
	if m == nil {
		return
	}
	status := "miss"
	if had {
		status = "hit"
	}
	m.requests.WithLabelValues(status).Inc()
	m.durations.WithLabelValues(status).Observe(time.Since(begun).Seconds())
}

// fetched counts a call to the authenticator.
func (m *TokenCacheMetrics) fetched(err error) {
	if m == nil {
		return
	}
	status := "ok"
	if err != nil {
		status = "error"
	}
	m.fetches.WithLabelValues(status).Inc()
}

// States of active calls.
const (
	asking  = "in_flight" // a running call
	blocked = "blocked"   // a request that waits for a call
)

// begin increments the gauge of a state, and returns a function that decrements it.
func (m *TokenCacheMetrics) begin(what string) (end func()) {
	if m == nil {
		return func() {}
	}
	g := m.active.WithLabelValues(what)
	g.Inc()
	return g.Dec
}
