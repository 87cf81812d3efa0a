package server

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/anykind/anykind/internal/object/histogram"
)

// A resetting gatherer subtracts the counts of the last reset from those of another gatherer. The counters
// themselves continue, because other code holds them. Gauges, and histograms without labels, have no reset.
type resetting struct {
	prometheus.Gatherer

	mu     sync.Mutex
	before map[string]*dto.Metric // by name and labels
}

// reset stores the present counts.
func (g *resetting) reset() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	all, err := g.Gatherer.Gather()
	if err != nil {
		return err
	}
	g.before = map[string]*dto.Metric{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if m.GetCounter() != nil || m.GetHistogram() != nil && len(m.GetLabel()) > 0 {
				g.before[seriesName(f, m)] = m
			}
		}
	}
	return nil
}

// Gather implements prometheus.Gatherer. It omits series with labels that have not changed since the reset.
func (g *resetting) Gather() ([]*dto.MetricFamily, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all, err := g.Gatherer.Gather()
	if len(g.before) == 0 {
		return all, err
	}
	present := map[string]*dto.Metric{}
	for _, f := range all {
		f.Metric = slices.DeleteFunc(f.GetMetric(), func(m *dto.Metric) bool {
			name := seriesName(f, m)
			before := g.before[name]
			if before == nil || size(m) < size(before) { // a new series
				return false
			}
			present[name] = before
			subtract(m, before)
			return size(m) == 0 && len(m.GetLabel()) > 0
		})
	}
	g.before = present
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return len(f.GetMetric()) == 0 }), err
}

// seriesName returns a name for a series that no other one has.
func seriesName(f *dto.MetricFamily, m *dto.Metric) string {
	var name strings.Builder
	name.WriteString(f.GetName())
	for _, l := range m.GetLabel() {
		name.WriteString("\x00" + l.GetName() + "\x00" + l.GetValue())
	}
	return name.String()
}

// size returns the count of a counter or a histogram.
func size(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
}

// subtract subtracts an earlier state of a metric.
func subtract(m, before *dto.Metric) {
	if c := m.GetCounter(); c != nil {
		left := c.GetValue() - before.GetCounter().GetValue()
		c.Value = &left
	}
	if h := m.GetHistogram(); h != nil {
		histogram.Merge(h, before.GetHistogram(), -1)
	}
}

// page answers a DELETE with a reset, and other requests with metrics.
func (g *resetting) page(metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete {
			metrics.ServeHTTP(w, r)
			return
		}
		if err := g.reset(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "metrics reset\n")
	})
}
