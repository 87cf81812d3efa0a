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

// Metrics counts requests to peers, and requests for discovery, under Kubernetes' names. Nil Metrics have no
// Collectors.
type Metrics struct {
	rerouted, errors, discovery *prometheus.CounterVec
	hits, misses, local         prometheus.Counter

	all []prometheus.Collector
}

func newMetrics() *Metrics {
	m := &Metrics{}
	for _, v := range []struct {
		to         **prometheus.CounterVec
		name, help string
		labels     []string
	}{
		{&m.rerouted, "apiserver_rerouted_request_total",
			"Requests to peers, by code, group, version and resource; the last three are empty for requests for discovery.", []string{"code", "group", "version", "resource"}},
		{&m.errors, "apiserver_peer_proxy_errors_total",
			"Requests that could not be forwarded to a peer, by type of the error, group, version and resource.", []string{"type", "group", "version", "resource"}},
		{&m.discovery, "apiserver_peer_discovery_sync_errors_total",
			"Failed requests for the discovery of a peer, by type of the error.", []string{"type"}},
	} {
		*v.to = prometheus.NewCounterVec(prometheus.CounterOpts{Name: v.name, Help: v.help}, v.labels)
		m.all = append(m.all, *v.to)
	}
	for _, c := range []struct {
		to         *prometheus.Counter
		name, help string
	}{
		{&m.hits, "peer_aggregated_cache_hits_total", "Responses with the discovery of all servers from the cache."},
		{&m.misses, "peer_aggregated_cache_misses_total", "Responses with the discovery of all servers that was merged for them."},
		{&m.local, "nopeer_requests_total", "Requests for the discovery of this server only."},
	} {
		*c.to = prometheus.NewCounter(prometheus.CounterOpts{Name: "aggregator_discovery_" + c.name, Help: c.help})
		m.all = append(m.all, *c.to)
	}
	return m
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	if m == nil {
		return nil
	}
	return m.all
}

func (m *Metrics) sent(code int, of schema.GroupVersionResource) {
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
