package rest

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// shardSelector returns the shard selector of a list or watch; "" while the gate is off.
func (h *Handler) shardSelector(o *metav1.ListOptions) string {
	if !h.options.Gates.On(gate.ShardedListAndWatch) {
		return ""
	}
	return o.ShardSelector
}

// shardMetrics count watches of shards, under Kubernetes' names.
type shardMetrics struct {
	watches *prometheus.GaugeVec
	missed  *prometheus.CounterVec
}

func newShardMetrics() *shardMetrics {
	labels := []string{"group", "resource"}
	return &shardMetrics{
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_watch_shards_total", Help: "Open watches with a shard selector, by group and resource.",
		}, labels),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_filtered_events_total", Help: "Objects of watch events outside the shard of the watch, by group and resource.",
		}, labels),
	}
}

// miss returns a function that counts objects outside the shard of a watch; nil for a watch without one.
func (m *shardMetrics) miss(d *resource.Definition, selector string) func() {
	if selector == "" {
		return nil
	}
	return m.missed.WithLabelValues(d.Group, d.Plural).Inc
}

// begin counts a watch until the caller calls end.
func (m *shardMetrics) begin(d *resource.Definition, selector string) (end func()) {
	if selector == "" {
		return func() {}
	}
	open := m.watches.WithLabelValues(d.Group, d.Plural)
	open.Inc()
	return open.Dec
}
