package authn

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TokenCacheMetrics count the requests of all TokenCaches of a server, and what they had to ask,
// under the names that Kubernetes has for them.
type TokenCacheMetrics struct {
	requests, fetches *prometheus.CounterVec
	durations         *prometheus.HistogramVec
	active            *prometheus.GaugeVec
}

// NewTokenCacheMetrics returns those of one server.
func NewTokenCacheMetrics() *TokenCacheMetrics {
	const prefix = "authentication_token_cache_"
	status := []string{"status"}
	return &TokenCacheMetrics{
		requests:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "request_total", Help: "Token lookups in the cache, by hit or miss."}, status),
		fetches:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "fetch_total", Help: "Calls to token authenticators, by outcome."}, status),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "request_duration_seconds", Help: "Duration of token lookups, by hit or miss."}, status),
		active:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "active_fetch_count", Help: "Calls to token authenticators in progress, and requests that wait for them."}, status),
	}
}

// Collectors are what is to be registered; nothing of nil.
func (m *TokenCacheMetrics) Collectors() []prometheus.Collector {
	if m == nil {
		return nil
	}
	return []prometheus.Collector{m.requests, m.fetches, m.durations, m.active}
}

// looked counts a look-up that began at a time. had says that the cache had it.
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

// fetched counts a question.
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

// States of what is active.
const (
	asking  = "in_flight" // a question
	blocked = "blocked"   // a request that waits for the answer
)

// begin counts something active in, and returns what counts it out.
func (m *TokenCacheMetrics) begin(what string) (end func()) {
	if m == nil {
		return func() {}
	}
	g := m.active.WithLabelValues(what)
	g.Inc()
	return g.Dec
}
