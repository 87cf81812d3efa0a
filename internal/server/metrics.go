package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anykind/anykind/internal/resource"
)

// metrics count requests. The names and labels are kube-apiserver's where they
// mean the same, so that its dashboards work.
type metrics struct {
	catalog     *resource.Catalog
	requests    *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	longRunning *prometheus.GaugeVec

	mu     sync.RWMutex
	series map[labels]*series
	// pruneAt is how many series make it worth looking for those of resources
	// that are gone.
	pruneAt int
}

// A series is where the requests with some labels are counted: looking it up in
// the vectors takes longer than counting.
type series struct {
	requests  prometheus.Counter
	durations prometheus.Observer
}

const pruneAtLeast = 1024

func newMetrics(catalog *resource.Catalog) *metrics {
	names := []string{"verb", "group", "version", "resource", "subresource", "scope"}
	answered := append(names[:len(names):len(names)], "dry_run")
	component := prometheus.Labels{"component": "apiserver"}
	return &metrics{
		catalog: catalog,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name:        "apiserver_request_total",
			Help:        "Requests answered, by verb, group, version, resource, subresource, scope, dry run and code.",
			ConstLabels: component,
		}, append(answered[:len(answered):len(answered)], "code")),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:        "apiserver_request_duration_seconds",
			Help:        "How long requests took, by verb, group, version, resource, subresource, scope and dry run.",
			ConstLabels: component,
			Buckets:     []float64{.0005, .001, .0025, .005, .025, .05, .1, .2, .4, .6, .8, 1, 1.5, 2, 3, 4, 5, 8, 10, 15, 20, 30, 45, 60},
		}, answered),
		longRunning: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name:        "apiserver_longrunning_requests",
			Help:        "Watches and other requests without a time limit that are open now.",
			ConstLabels: component,
		}, names),
		series:  map[labels]*series{},
		pruneAt: pruneAtLeast,
	}
}

// begin counts x in, and returns what counts it out and says how long it took.
func (m *metrics) begin(x *exchange, r *http.Request) (done func() time.Duration) {
	l := labelsOf(x.Info, m.catalog)
	l.dryRun = dryRun(r)
	var open prometheus.Gauge
	if x.longRunning() {
		open = m.longRunning.WithLabelValues(l.values()...)
		open.Inc()
	}
	return func() time.Duration {
		if open != nil {
			open.Dec()
		}
		l.code = x.answered()
		elapsed := time.Since(x.started)
		s := m.of(l)
		s.requests.Inc()
		s.durations.Observe(elapsed.Seconds())
		return elapsed
	}
}

func (m *metrics) of(l labels) *series {
	m.mu.RLock()
	s := m.series[l]
	m.mu.RUnlock()
	if s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.series) >= m.pruneAt {
		m.prune()
		m.pruneAt = max(2*len(m.series), pruneAtLeast)
	}
	values := append(l.values(), l.dryRun)
	s = &series{
		requests:  m.requests.WithLabelValues(append(values, strconv.Itoa(l.code))...),
		durations: m.durations.WithLabelValues(values...),
	}
	m.series[l] = s
	return s
}

// prune forgets the series of resources that are no longer there. m.mu is held.
func (m *metrics) prune() {
	set := m.catalog.Set()
	for l := range m.series {
		if l.resource == "" || set.Lookup(l.group, l.resource) != nil {
			continue
		}
		delete(m.series, l)
		gone := prometheus.Labels{"group": l.group, "resource": l.resource}
		m.requests.DeletePartialMatch(gone)
		m.durations.DeletePartialMatch(gone)
		// A watch that is still about to end counts itself out of nowhere.
		m.longRunning.DeletePartialMatch(gone)
	}
}

// metricsPage serves the metrics. Describing those of the Go runtime takes a
// moment, which only a server that is asked for them spends.
func (s *Server) metricsPage() http.Handler {
	page := sync.OnceValue(s.gatherer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.metrics.mu.Lock()
		s.metrics.prune()
		s.metrics.mu.Unlock()
		page().ServeHTTP(w, r)
	})
}

func (s *Server) gatherer() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.metrics.requests, s.metrics.durations, s.metrics.longRunning,
		inFlight("readOnly", &s.reading), inFlight("mutating", &s.writing),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(s.access.collectors()...)
	registry.MustRegister(s.impersonator.Collectors()...)
	registry.MustRegister(s.options.Collectors...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func inFlight(kind string, g *gate) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "apiserver_current_inflight_requests",
		Help:        "Requests in flight that count towards the limit of their kind.",
		ConstLabels: prometheus.Labels{"request_kind": kind},
	}, func() float64 { return float64(g.inside.Load()) })
}
