package configfile

import (
	"crypto/sha256"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics identify the configuration in force, under Kubernetes' names.
type Metrics struct {
	Reloads  *prometheus.CounterVec
	reloaded *prometheus.GaugeVec
	InForce  *prometheus.GaugeVec

	server string
}

// NewMetrics returns the Metrics of one configuration of a server: "authentication",
// "authorization" or "encryption".
func NewMetrics(of, server string) *Metrics {
	prefix := "apiserver_" + of + "_config_controller_"
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	}
	return &Metrics{
		Reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "automatic_reloads_total",
			Help: "Automatic reloads of the " + of + " configuration, by status.",
		}, []string{"status", "apiserver_id_hash"}),
		reloaded: gauge("automatic_reload_last_timestamp_seconds",
			"Time of the last automatic reload of the "+of+" configuration, by status.", "status", "apiserver_id_hash"),
		InForce: gauge("last_config_info",
			"Hash of the current "+of+" configuration.", "apiserver_id_hash", "hash"),
		server: Sum([]byte(server)),
	}
}

// Collectors returns the collectors to register; none for nil.
func (m *Metrics) Collectors() []prometheus.Collector {
	if m == nil {
		return nil
	}
	return []prometheus.Collector{m.Reloads, m.reloaded, m.InForce}
}

// Sum returns a hash, in place of a value that metrics must not reveal.
func Sum(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data))
}

// loaded records a successful or failed load.
func (m *Metrics) loaded(data []byte, err error) {
	status := "success"
	if err != nil {
		status = "failure"
	}
	m.Reloads.WithLabelValues(status, m.server).Inc()
	m.reloaded.WithLabelValues(status, m.server).SetToCurrentTime()
	if err == nil {
		m.Begin(data)
	}
}

// Begin records the configuration in force.
func (m *Metrics) Begin(data []byte) {
	m.InForce.Reset()
	m.InForce.WithLabelValues(m.server, Sum(data)).Set(1)
}
