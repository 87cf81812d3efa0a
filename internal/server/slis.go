package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

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
			Help: "Whether a check went well the last time, by its name and by which summary it was part of: 1 if so.",
		}, []string{"name", "type"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubernetes_healthchecks_total",
			Help: "How often a check was done, by its name, by which summary it was part of, and by how it went.",
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

// page returns the handler of the metrics.
func (s *slis) page(show func(prometheus.Gatherer) http.Handler) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.last, s.total)
	return show(registry)
}
