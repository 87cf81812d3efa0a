package remotecommand

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count WebSockets to exec, attach and portforward, under the metric names of Kubernetes.
type Metrics struct{ commands, tunnels, requests *prometheus.CounterVec }

// NewMetrics returns Metrics that count from zero.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_" + name, Help: help}, labels)
	}
	return &Metrics{
		commands: counter("stream_translator_requests_total", "WebSockets of commands that were translated to SPDY, by code.", "code"),
		tunnels:  counter("stream_tunnel_requests_total", "WebSockets with a tunnel for forwarded ports, by code.", "code"),
		requests: counter("websocket_streaming_requests_total",
			"Requests for streams, by subresource, and by their way: proxied_to_kubelet as they are, or translated_at_apiserver.", "subresource", "proxy_type"),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.commands, m.tunnels, m.requests}
}

// command counts a translated WebSocket.
func (m *Metrics) command(code int) { m.commands.WithLabelValues(strconv.Itoa(code)).Inc() }

// Tunnel counts a tunnel.
func (m *Metrics) Tunnel(code int) { m.tunnels.WithLabelValues(strconv.Itoa(code)).Inc() }

// Request counts a request for a subresource, and whether it is translated here if it is a WebSocket.
func (m *Metrics) Request(subresource string, translated bool) {
	by := "proxied_to_kubelet"
	if translated {
		by = "translated_at_apiserver"
	}
	m.requests.WithLabelValues(subresource, by).Inc()
}
