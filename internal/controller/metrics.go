package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics describe the queues of controllers, under the names of client-go's work queues. The label
// name is the name of the controller.
type Metrics struct {
	adds, retries  *prometheus.CounterVec
	waited, worked *prometheus.HistogramVec

	mu     sync.Mutex
	queues map[string]*Queue // of the last Engine
}

// queueDurations are the buckets of client-go: from 10 ns to 10 s.
var queueDurations = prometheus.ExponentialBuckets(10e-9, 10, 10)

// NewMetrics returns Metrics for all Engines of a server.
func NewMetrics() *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, queueLabels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: queueDurations}, queueLabels)
	}
	return &Metrics{
		adds:    counter("workqueue_adds_total", "Tasks added to the queue of a controller."),
		retries: counter("workqueue_retries_total", "Tasks of a controller that failed and are retried."),
		waited:  histogram("workqueue_queue_duration_seconds", "Time in seconds that a task waits in the queue of a controller."),
		worked:  histogram("workqueue_work_duration_seconds", "Duration in seconds of a task of a controller."),
		queues:  map[string]*Queue{},
	}
}

var (
	queueLabels    = []string{"name"}
	depthDesc      = prometheus.NewDesc("workqueue_depth", "Pending tasks of a controller.", queueLabels, nil)
	unfinishedDesc = prometheus.NewDesc("workqueue_unfinished_work_seconds", "Time in seconds that the running tasks of a controller have taken so far, in total.", queueLabels, nil)
	longestDesc    = prometheus.NewDesc("workqueue_longest_running_processor_seconds", "Time in seconds that the longest running task of a controller has taken so far.", queueLabels, nil)
)

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.adds, m.retries, m.waited, m.worked, m}
}

// Describe implements prometheus.Collector, for the state of the queues.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	to <- depthDesc
	to <- unfinishedDesc
	to <- longestDesc
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, q := range m.queues {
		depth, unfinished, longest := q.state(time.Now())
		to <- prometheus.MustNewConstMetric(depthDesc, prometheus.GaugeValue, float64(depth), name)
		to <- prometheus.MustNewConstMetric(unfinishedDesc, prometheus.GaugeValue, unfinished.Seconds(), name)
		to <- prometheus.MustNewConstMetric(longestDesc, prometheus.GaugeValue, longest.Seconds(), name)
	}
}

// counts are the counters of one queue.
type counts struct {
	adds, retries  prometheus.Counter
	waited, worked prometheus.Observer
}

// follow counts the tasks of a queue. It replaces the queue of an earlier Engine.
func (m *Metrics) follow(name string, q *Queue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[name] = q
	q.counts = counts{m.adds.WithLabelValues(name), m.retries.WithLabelValues(name), m.waited.WithLabelValues(name), m.worked.WithLabelValues(name)}
}

// state returns the number of pending tasks, and the times of the running tasks. A queue that has
// not started or has ended has none.
func (q *Queue) state(now time.Time) (depth int, unfinished, longest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx == nil || q.ctx.Err() != nil {
		return 0, 0, 0
	}
	for _, e := range q.entries {
		if e.running {
			took := now.Sub(e.began)
			unfinished += took
			longest = max(longest, took)
		}
	}
	return len(q.pending), unfinished, longest
}
