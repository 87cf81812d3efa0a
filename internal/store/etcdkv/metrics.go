package etcdkv

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/histogram"
	"github.com/anykind/anykind/internal/store/kv"
)

// metrics count the calls of etcd that read and write objects, under Kubernetes' names.
type metrics struct {
	resource func(key string) (group, resource string)

	requests, errors *prometheus.CounterVec
	durations        *prometheus.HistogramVec

	mu     sync.Mutex
	series map[callKey]*series
}

type callKey struct{ operation, group, resource string }

type series struct {
	requests, errors prometheus.Counter
	duration         prometheus.Observer
}

// maxSeries limits the series: definitions come and go. Beyond it all counters start again.
const maxSeries = 4096

// Operations of calls.
const (
	opGet    = "get"
	opList   = "list"
	opCreate = "create"
	opUpdate = "update"
	opDelete = "delete"
)

func newMetrics(resource func(key string) (group, resource string), gates *gate.Set) *metrics {
	if resource == nil {
		resource = func(string) (string, string) { return "", "" }
	}
	labels := []string{"operation", "group", "resource"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		resource: resource,
		requests: counter("etcd_requests_total", "Calls of etcd, by operation, group and resource."),
		errors:   counter("etcd_request_errors_total", "Failed calls of etcd, by operation, group and resource."),
		durations: histogram.NewVec(gates, prometheus.HistogramOpts{
			Name: "etcd_request_duration_seconds", Help: "Duration of calls of etcd in seconds, by operation, group and resource.",
			Buckets: []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, labels),
		series: map[callKey]*series{},
	}
}

// Collectors returns the collectors to register.
func (s *Store) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.requests, s.metrics.errors, s.metrics.durations}
}

// called counts a call that began at a time. A missing key or a conflict is no error of the call.
func (m *metrics) called(operation, key string, begun time.Time, err error) {
	group, resource := m.resource(key)
	s := m.of(callKey{operation, group, resource})
	s.requests.Inc()
	s.duration.Observe(time.Since(begun).Seconds())
	if err != nil {
		s.errors.Inc()
	}
}

func (m *metrics) of(key callKey) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.series[key]; s != nil {
		return s
	}
	if len(m.series) >= maxSeries {
		clear(m.series)
		m.requests.Reset()
		m.errors.Reset()
		m.durations.Reset()
	}
	values := []string{key.operation, key.group, key.resource}
	s := &series{m.requests.WithLabelValues(values...), m.errors.WithLabelValues(values...), m.durations.WithLabelValues(values...)}
	m.series[key] = s
	return s
}

// operation returns the operation of a write: that of its key.
func operation(w *kv.Write) string {
	switch {
	case w.Value == nil:
		return opDelete
	case w.Expect == kv.Absent:
		return opCreate
	default:
		return opUpdate
	}
}
