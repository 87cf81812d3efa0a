package server

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/gate"
)

// features collects the values of the feature gates. They are read at the first request.
type features func() ([]gate.Feature, error)

func newFeatures(gates *gate.Set) features { return sync.OnceValues(gates.Features) }

var featureEnabled = prometheus.NewDesc("kubernetes_feature_enabled", "1 for a feature gate that is on, 0 for one that is off.", []string{"name", "stage"}, nil)

// Describe implements prometheus.Collector.
func (features) Describe(to chan<- *prometheus.Desc) { to <- featureEnabled }

// Collect implements prometheus.Collector.
func (f features) Collect(to chan<- prometheus.Metric) {
	all, err := f()
	if err != nil {
		to <- prometheus.NewInvalidMetric(featureEnabled, err)
		return
	}
	for _, one := range all {
		value := 0.0
		if one.On {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(featureEnabled, prometheus.GaugeValue, value, string(one.Name), one.Stage)
	}
}
