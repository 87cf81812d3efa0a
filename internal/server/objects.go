package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// objectCounts is the metric of stored objects, under Kubernetes' name. A scrape counts them, at
// most once in countedFor.
type objectCounts struct {
	store   kv.Counter
	catalog *resource.Catalog
	log     *slog.Logger

	mu      sync.Mutex
	counted time.Time
	counts  []prometheus.Metric
}

const (
	// countedFor is the lifetime of a count, as in Kubernetes.
	countedFor = time.Minute
	// countTimeout limits the time for counting.
	countTimeout = 5 * time.Second
)

var objectCountDesc = prometheus.NewDesc("apiserver_resource_objects",
	"Stored objects, by group and resource, at most a minute old; -1 after an error.", []string{"group", "resource"}, nil)

// ObjectCounts returns collectors for the stored objects of the catalog.
func ObjectCounts(b kv.Backend, catalog *resource.Catalog, log *slog.Logger) []prometheus.Collector {
	store, ok := kv.As[kv.Counter](b)
	if !ok {
		return nil
	}
	return []prometheus.Collector{&objectCounts{store: store, catalog: catalog, log: log}}
}

// Describe implements prometheus.Collector.
func (c *objectCounts) Describe(to chan<- *prometheus.Desc) { to <- objectCountDesc }

// Collect implements prometheus.Collector.
func (c *objectCounts) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counted.IsZero() || time.Since(c.counted) >= countedFor {
		c.count()
		c.counted = time.Now()
	}
	for _, m := range c.counts {
		to <- m
	}
}

func (c *objectCounts) count() {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	c.counts = nil
	var failed error
	for d := range c.catalog.Set().All() {
		elsewhere := !d.StoredAs.Empty() && d.StoredAs.Group != d.Group // among the objects of another group
		if !d.Stored() || !d.Served() || elsewhere {
			continue
		}
		n := int64(-1)
		if failed == nil {
			if n, failed = c.store.Count(ctx, d.StoragePrefix, kv.Latest); failed != nil {
				n = -1
				c.log.Info("stored objects could not be counted", "error", failed)
			}
		}
		c.counts = append(c.counts, prometheus.MustNewConstMetric(objectCountDesc, prometheus.GaugeValue, float64(n), d.Group, d.Plural))
	}
}
