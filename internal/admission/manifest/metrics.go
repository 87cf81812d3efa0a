package manifest

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/network/configfile"
)

// Metrics describe the files in force, under the metric names of Kubernetes.
type Metrics struct {
	reloads  *prometheus.CounterVec
	reloaded *prometheus.GaugeVec
	inForce  *prometheus.GaugeVec

	server string
}

// NewMetrics returns Metrics of a server.
func NewMetrics(server string) *Metrics {
	const prefix = "apiserver_manifest_admission_config_controller_"
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	}
	return &Metrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "automatic_reloads_total", Help: "Automatic reloads of the manifests of an admission plugin, by status.",
		}, []string{"status", "plugin", "apiserver_id_hash"}),
		reloaded: gauge("automatic_reload_last_timestamp_seconds",
			"Time of the last automatic reload of the manifests of an admission plugin, by status.", "status", "plugin", "apiserver_id_hash"),
		inForce: gauge("last_config_info",
			"Hash of the current manifests of an admission plugin.", "plugin", "apiserver_id_hash", "hash"),
		server: configfile.Sum([]byte(server)),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.reloads, m.reloaded, m.inForce}
}

// loaded records a successful or failed load.
func (m *Metrics) loaded(plugin, sum string, err error) {
	status := "success"
	if err != nil {
		status = "failure"
	} else {
		m.inForce.DeletePartialMatch(prometheus.Labels{"plugin": plugin})
		m.inForce.WithLabelValues(plugin, m.server, sum).Set(1)
	}
	m.reloads.WithLabelValues(status, plugin, m.server).Inc()
	m.reloaded.WithLabelValues(status, plugin, m.server).SetToCurrentTime()
}
