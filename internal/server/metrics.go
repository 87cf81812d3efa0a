package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/histogram"
	"github.com/anykind/anykind/internal/object/resource"
)

// metrics count requests. Names and labels with the same meaning are kube-apiserver's, so that
// its dashboards work.
type metrics struct {
	catalog      *resource.Catalog
	requests     *prometheus.CounterVec
	durations    *prometheus.HistogramVec
	own          *prometheus.HistogramVec // without webhooks and queues
	sizes        *prometheus.HistogramVec
	longRunning  *prometheus.GaugeVec
	terminations *prometheus.CounterVec
	aborts       *prometheus.CounterVec
	deprecated   *prometheus.GaugeVec
	bodies       *prometheus.HistogramVec
	handshakes   prometheus.Counter // that failed

	mu     sync.RWMutex
	series map[labels]*series
	// pruneAt is the number of series at which those of removed resources are dropped.
	pruneAt int
}

// A series holds the counters of one set of labels: a lookup in the vectors takes longer than
// counting.
type series struct {
	requests   prometheus.Counter
	durations  prometheus.Observer
	own, sizes prometheus.Observer // nil for requests that are not observed
	bodies     prometheus.Observer // nil for requests without a body
}

const pruneAtLeast = 1024

func newMetrics(catalog *resource.Catalog, gates *gate.Set) *metrics {
	names := []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	with := func(more ...string) []string { return append(names[:len(names):len(names)], more...) }
	slow := []float64{.05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels []string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	newHistogram := func(name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
		return histogram.NewVec(gates, prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	return &metrics{
		catalog: catalog,
		requests: counter("apiserver_request_total",
			"Completed requests, by verb, group, version, resource, subresource, scope, component, dry run and code.", with("dry_run", "code")),
		durations: newHistogram("apiserver_request_duration_seconds",
			"Request duration in seconds, by verb, group, version, resource, subresource, scope, component and dry run.",
			append([]float64{.0005, .001, .0025, .005, .025}, slow...), with("dry_run")),
		own: newHistogram("apiserver_request_sli_duration_seconds",
			"Request duration in seconds, without dry runs and without the time of admission webhooks and queues.", slow, names),
		sizes: newHistogram("apiserver_response_sizes", "Response sizes of read requests in bytes.", prometheus.ExponentialBuckets(1000, 10, 7), names),
		longRunning: gauge("apiserver_longrunning_requests",
			"Open long-running requests, such as watches.", names),
		terminations: counter("apiserver_request_terminations_total",
			"Requests that the server rejected over a limit or ended after the request timeout, by code.", with("code")),
		aborts: counter("apiserver_request_aborts_total",
			"Requests whose answer was cut off, by verb, group, version, resource, subresource and scope.", names[:len(names)-1:len(names)-1]),
		bodies: newHistogram("apiserver_request_body_size_bytes",
			"Sizes of request bodies in bytes, by group, resource and verb.", prometheus.LinearBuckets(50000, 100000, 31), []string{"group", "resource", "verb"}),
		handshakes: prometheus.NewCounter(prometheus.CounterOpts{Name: "apiserver_tls_handshake_errors_total", Help: "Failed TLS handshakes with clients."}),
		deprecated: gauge("apiserver_requested_deprecated_apis",
			"Requested deprecated APIs, by group, version, resource, subresource and the release that removes them.", []string{"group", "version", "resource", "subresource", "removed_release"}),
		series:  map[labels]*series{},
		pruneAt: pruneAtLeast,
	}
}

// collectors returns the collectors to register.
func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.durations, m.own, m.sizes, m.longRunning, m.terminations, m.aborts, m.deprecated, m.bodies, m.handshakes}
}

// counted counts requests for existing resources that have passed all other filters.
func (s *Server) counted(next handler) handler {
	return func(x *exchange, r *http.Request) {
		l, ok := labelsOf(&x.Info, r, s.metrics.catalog)
		if !ok {
			next(x, r)
			return
		}
		if x.longRunning() {
			at := l
			at.scope = scope(&x.Info, x.Info.Name != "")
			open := s.metrics.longRunning.WithLabelValues(at.values()...)
			open.Inc()
			defer open.Dec()
		}
		next(x, r)
		if l.code = x.answered(); l.code != http.StatusMethodNotAllowed {
			l.dryRun = dryRun(r)
			s.metrics.observe(l, x)
		}
	}
}

// observe counts an answer.
func (m *metrics) observe(l labels, x *exchange) {
	elapsed := time.Since(x.started)
	s := m.of(l)
	s.requests.Inc()
	s.durations.Observe(elapsed.Seconds())
	if s.own != nil {
		s.own.Observe((elapsed - x.Waited()).Seconds())
	}
	if s.sizes != nil {
		s.sizes.Observe(float64(x.size))
	}
	if n, read := x.BodySize(); read && s.bodies != nil {
		s.bodies.Observe(float64(n))
	}
	if l.code == http.StatusGatewayTimeout {
		m.terminate(l)
	}
}

// aborted counts a request whose answer is cut off.
func (m *metrics) aborted(x *exchange, r *http.Request) {
	l, ok := labelsOf(&x.Info, r, m.catalog)
	if !ok {
		l = labels{verb: methodVerb(r, "")}
	}
	values := l.values()
	m.aborts.WithLabelValues(values[:len(values)-1]...).Inc()
}

// rejected counts a request that a limit has rejected.
func (m *metrics) rejected(x *exchange, r *http.Request) {
	l, ok := labelsOf(&x.Info, r, m.catalog)
	if !ok || !x.Info.IsResource {
		l = labels{verb: methodVerb(r, "")}
	}
	l.component, l.code, l.dryRun = component, http.StatusTooManyRequests, dryRun(r)
	m.requests.WithLabelValues(append(l.values(), l.dryRun, strconv.Itoa(l.code))...).Inc()
	m.terminate(l)
}

func (m *metrics) terminate(l labels) {
	m.terminations.WithLabelValues(append(l.values(), strconv.Itoa(l.code))...).Inc()
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
	values := l.values()
	answered := append(values[:len(values):len(values)], l.dryRun)
	s = &series{
		requests:  m.requests.WithLabelValues(append(answered, strconv.Itoa(l.code))...),
		durations: m.durations.WithLabelValues(answered...),
	}
	if l.dryRun == "" {
		s.own = m.own.WithLabelValues(values...)
	}
	if l.verb == http.MethodGet || l.verb == verbList || l.verb == verbWatch {
		s.sizes = m.sizes.WithLabelValues(values...)
	}
	if verb := l.bodyVerb(); verb != "" {
		s.bodies = m.bodies.WithLabelValues(l.group, l.resource, verb)
	}
	m.noteDeprecated(l)
	m.series[l] = s
	return s
}

// noteDeprecated records a request for a version if that version is deprecated.
func (m *metrics) noteDeprecated(l labels) {
	d := m.catalog.Set().Lookup(l.group, l.resource)
	if d == nil {
		return
	}
	v := d.Version(l.version)
	if v == nil || !v.Deprecated {
		return
	}
	m.deprecated.WithLabelValues(l.group, l.version, l.resource, l.subresource, v.RemovedRelease).Set(1)
}

// prune drops the series of removed resources. The caller holds m.mu.
func (m *metrics) prune() {
	set := m.catalog.Set()
	for l := range m.series {
		if l.resource == "" || l.scope == "" || set.Lookup(l.group, l.resource) != nil {
			continue
		}
		delete(m.series, l)
		gone := prometheus.Labels{"group": l.group, "resource": l.resource}
		m.requests.DeletePartialMatch(gone)
		m.durations.DeletePartialMatch(gone)
		m.own.DeletePartialMatch(gone)
		m.sizes.DeletePartialMatch(gone)
		m.bodies.DeletePartialMatch(gone)
		m.terminations.DeletePartialMatch(gone)
		m.aborts.DeletePartialMatch(gone)
		m.deprecated.DeletePartialMatch(gone)
		// A watch that has not yet ended will decrement a gauge that is gone.
		m.longRunning.DeletePartialMatch(gone)
	}
}
