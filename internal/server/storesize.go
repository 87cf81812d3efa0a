package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/store/kv"
)

// storeSize is the metric of the store's size, under Kubernetes' name. A scrape measures it. A
// store in memory has none.
type storeSize struct {
	store kv.Sizer
	log   *slog.Logger
}

// sizeTimeout limits the time of a measurement.
const sizeTimeout = time.Second

var storeSizeDesc = prometheus.NewDesc("apiserver_storage_size_bytes", "Size of the storage file or database in bytes.", []string{"storage_cluster_id"}, nil)

// StoreSizes returns the collectors for a store.
func StoreSizes(b kv.Backend, log *slog.Logger) []prometheus.Collector {
	store, ok := kv.As[kv.Sizer](b)
	if !ok {
		return nil
	}
	return []prometheus.Collector{storeSize{store, log}}
}

// Describe implements prometheus.Collector.
func (storeSize) Describe(to chan<- *prometheus.Desc) { to <- storeSizeDesc }

// Collect implements prometheus.Collector.
func (s storeSize) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), sizeTimeout)
	defer cancel()
	size, err := s.store.Size(ctx)
	if err != nil {
		s.log.Info("the size of the store is unknown", "error", err)
		return
	}
	to <- prometheus.MustNewConstMetric(storeSizeDesc, prometheus.GaugeValue, float64(size), "etcd-0")
}

// StoreCalls returns the metrics of the calls of a store that is another server.
func StoreCalls(b kv.Backend) []prometheus.Collector {
	if store, ok := kv.As[interface{ Collectors() []prometheus.Collector }](b); ok {
		return store.Collectors()
	}
	return nil
}
