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
	const labels = "protocol (http-connect or grpc) and transport (tcp or uds)"
	client := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "konnectivity_network_proxy", Subsystem: "client", Name: name, Help: help}
	}
	return &metrics{
		starts: prometheus.NewCounterVec(dialer("dial_start_total", "Started dials, by "+labels+"."), []string{"protocol", "transport"}),
		failures: prometheus.NewCounterVec(dialer("dial_failure_count", "Failed dials, by protocol (http-connect or grpc), transport (tcp or uds) and the stage of the failure (connect or proxy)."),
			[]string{"protocol", "transport", "stage"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "apiserver", Subsystem: "egress_dialer", Name: "dial_duration_seconds",
			Help:    "[ALPHA] Dial duration in seconds, by " + labels + ".",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 2.5, 12.5},
		}, []string{"protocol", "transport"}),

		packets:      prometheus.NewCounterVec(client("stream_packets_total", "Packets processed, by segment (such as from_client) and packet type (such as DIAL_REQ)."), []string{"segment", "packet_type"}),
		streamErrors: prometheus.NewCounterVec(client("stream_errors_total", "Errors of gRPC streams, by segment (such as from_agent), gRPC code (such as Code.Unavailable) and packet type (such as DIAL_RSP)."), []string{"segment", "code", "packet_type"}),
		dialFailures: prometheus.NewCounterVec(client("dial_failure_total", "Failed dials, by reason."), []string{"reason"}),
		tunnels: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "konnectivity_network_proxy", Subsystem: "client", Name: "client_connections",
			Help: "Open client connections, by status.",
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
