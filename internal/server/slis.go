package server

import "github.com/prometheus/client_golang/prometheus"

// slis are the service level indicators of Kubernetes' components: results of health checks,
// counted on request. Names and labels are kube-apiserver's.
type slis struct {
	last  *prometheus.GaugeVec
	total *prometheus.CounterVec
}

func newSLIs() *slis {
	return &slis{
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck",
			Help: "Result of the last run of a health check, by name and endpoint: 1 for success.",
		}, []string{"name", "type"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubernetes_healthchecks_total",
			Help: "Runs of health checks, by name, endpoint and status.",
		}, []string{"name", "type", "status"}),
	}
}

// observe counts a check of a summary.
func (s *slis) observe(name, summary string, err error) {
	well, status := 1.0, "success"
	if err != nil {
		well, status = 0, "error"
	}
	s.last.WithLabelValues(name, summary).Set(well)
	s.total.WithLabelValues(name, summary, status).Inc()
}

// registry returns a registry of the metrics.
func (s *slis) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(s.last, s.total)
	return r
}
