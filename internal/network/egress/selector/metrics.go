package selector

import "github.com/prometheus/client_golang/prometheus"

// metrics counts connections through proxies. Names, labels, buckets and help texts are those of
// kube-apiserver and its Konnectivity client.
type metrics struct {
	starts, failures *prometheus.CounterVec
	durations        *prometheus.HistogramVec

	packets, streamErrors, dialFailures *prometheus.CounterVec
	tunnels                             *prometheus.GaugeVec
}

func newMetrics() *metrics {
	dialer := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "apiserver", Subsystem: "egress_dialer", Name: name, Help: "[ALPHA] " + help}
	}
	const labels = "the protocol (http-connect or grpc) and transport (tcp or uds)"
	client := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "konnectivity_network_proxy", Subsystem: "client", Name: name, Help: help}
	}
	return &metrics{
		starts: prometheus.NewCounterVec(dialer("dial_start_total", "Dial starts, labeled by "+labels+"."), []string{"protocol", "transport"}),
		failures: prometheus.NewCounterVec(dialer("dial_failure_count", "Dial failure count, labeled by the protocol (http-connect or grpc), transport (tcp or uds), and stage (connect or proxy). The stage indicates at which stage the dial failed"),
			[]string{"protocol", "transport", "stage"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "apiserver", Subsystem: "egress_dialer", Name: "dial_duration_seconds",
			Help:    "[ALPHA] Dial latency histogram in seconds, labeled by the protocol (http-connect or grpc), transport (tcp or uds)",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 2.5, 12.5},
		}, []string{"protocol", "transport"}),

		packets:      prometheus.NewCounterVec(client("stream_packets_total", "Count of packets processed, by segment and packet type (example: from_client, DIAL_REQ)"), []string{"segment", "packet_type"}),
		streamErrors: prometheus.NewCounterVec(client("stream_errors_total", "Count of gRPC stream errors, by segment, grpc Code, packet type. (example: from_agent, Code.Unavailable, DIAL_RSP)"), []string{"segment", "code", "packet_type"}),
		dialFailures: prometheus.NewCounterVec(client("dial_failure_total", "Number of dial failures observed, by reason (example: remote endpoint error)"), []string{"reason"}),
		tunnels: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "konnectivity_network_proxy", Subsystem: "client", Name: "client_connections",
			Help: "Number of open client connections, by status (Example: dialing)",
		}, []string{"status"}),
	}
}

// Collectors returns the collectors for /metrics.
func (s *Selector) Collectors() []prometheus.Collector {
	if s == nil {
		return nil
	}
	m := s.metrics
	return []prometheus.Collector{m.starts, m.failures, m.durations, m.packets, m.streamErrors, m.dialFailures, m.tunnels}
}
