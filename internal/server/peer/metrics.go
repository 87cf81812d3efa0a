package peer

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Types of errors in metrics.
const (
	endpointResolution = "endpoint_resolution" // no address of a peer is known
	transportSetup     = "proxy_transport"
	fetchDiscovery     = "fetch_discovery"
)

// Metrics counts requests to peers, and requests for discovery, under Kubernetes' names. A nil
// Metrics counts nothing.
type Metrics struct {
	rerouted, errors, discovery *prometheus.CounterVec
	hits, misses, local         prometheus.Counter
}

func newMetrics() *Metrics {
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "aggregator_discovery_" + name, Help: help})
	}
	return &Metrics{
		rerouted: vector("apiserver_rerouted_request_total",
			"Requests to peers, by code, group, version and resource; the last three are empty for requests for discovery.", "code", "group", "version", "resource"),
		errors: vector("apiserver_peer_proxy_errors_total",
			"Requests that could not be forwarded to a peer, by type of the error, group, version and resource.", "type", "group", "version", "resource"),
		discovery: vector("apiserver_peer_discovery_sync_errors_total",
			"Failed requests for the discovery of a peer, by type of the error.", "type"),
		hits:   counter("peer_aggregated_cache_hits_total", "Responses with the discovery of all servers from the cache."),
		misses: counter("peer_aggregated_cache_misses_total", "Responses with the discovery of all servers that was merged for them."),
		local:  counter("nopeer_requests_total", "Requests for the discovery of this server only."),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	if m == nil {
		return nil
	}
	return []prometheus.Collector{m.rerouted, m.errors, m.discovery, m.hits, m.misses, m.local}
}

func (m *Metrics) forwarded(code int, of schema.GroupVersionResource) {
	m.rerouted.WithLabelValues(strconv.Itoa(code), of.Group, of.Version, of.Resource).Inc()
}

func (m *Metrics) failed(kind string, of schema.GroupVersionResource) {
	m.errors.WithLabelValues(kind, of.Group, of.Version, of.Resource).Inc()
}

// Merged counts a response with the discovery of all servers.
func (m *Metrics) Merged(cached bool) {
	if cached {
		m.hits.Inc()
	} else {
		m.misses.Inc()
	}
}

// Local counts a request for the discovery of this server only.
func (m *Metrics) Local() { m.local.Inc() }
