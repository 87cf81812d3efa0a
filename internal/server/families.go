package server

import (
	_ "embed"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/anykind/anykind/internal/object/histogram"
	"github.com/anykind/anykind/internal/object/kubernetes"
)

// stabilityNames lists the metrics of kube-apiserver except those of the Go runtime, one
// per line: its name and its stability level.
//
//go:embed stability.txt
var stabilityNames string

var stability = sync.OnceValue(func() map[string]string {
	levels := map[string]string{}
	for line := range strings.Lines(stabilityNames) {
		name, level, _ := strings.Cut(strings.TrimSpace(line), " ")
		levels[name] = level
	}
	return levels
})

// MetricOptions select the metrics that are shown.
type MetricOptions struct {
	// Allowed has the allowed values of labels, by metric and label. Series with other values are
	// merged into one with the value "unexpected".
	Allowed map[string]map[string][]string
	// Disabled metrics are not shown.
	Disabled []string
}

// A gatherer filters the metrics of another one. It works during a scrape only; counting costs
// nothing.
type gatherer struct {
	prometheus.Gatherer
	options MetricOptions
}

// Gather implements prometheus.Gatherer.
func (g gatherer) Gather() ([]*dto.MetricFamily, error) {
	all, err := g.Gatherer.Gather()
	all = slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return slices.Contains(g.options.Disabled, f.GetName()) })
	levels := stability()
	for _, f := range all {
		if level := levels[f.GetName()]; level != "" {
			help := "[" + level + "] " + f.GetHelp()
			f.Help = &help
		}
		if allowed := g.options.Allowed[f.GetName()]; allowed != nil {
			f.Metric = constrain(f.GetMetric(), allowed)
		}
	}
	return all, err
}

// unexpected replaces values of labels that are not allowed.
var unexpected = "unexpected"

// constrain merges metrics whose labels have values that are not allowed.
func constrain(metrics []*dto.Metric, allowed map[string][]string) (shown []*dto.Metric) {
	sums := map[string]*dto.Metric{}
	for _, m := range metrics {
		m.Label = slices.Clone(m.GetLabel()) // shared with others
		var key strings.Builder
		for i, l := range m.GetLabel() {
			if values, limited := allowed[l.GetName()]; limited && !slices.Contains(values, l.GetValue()) {
				m.Label[i] = &dto.LabelPair{Name: l.Name, Value: &unexpected}
			}
			key.WriteString(strconv.Quote(m.GetLabel()[i].GetValue()))
		}
		if sum := sums[key.String()]; sum != nil {
			add(sum, m)
			continue
		}
		sums[key.String()] = m
		shown = append(shown, m)
	}
	return shown
}

// add adds a metric to another of the same family.
func add(to, m *dto.Metric) {
	sum := func(a, b float64) *float64 { a += b; return &a }
	if c := to.GetCounter(); c != nil {
		c.Value = sum(c.GetValue(), m.GetCounter().GetValue())
	}
	if g := to.GetGauge(); g != nil {
		g.Value = sum(g.GetValue(), m.GetGauge().GetValue())
	}
	if h := to.GetHistogram(); h != nil {
		histogram.Merge(h, m.GetHistogram(), 1)
	}
}

// metricsPage serves the metrics. The metrics of the Go runtime are described on the first
// request, because that takes a while.
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
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry := prometheus.NewRegistry()
	registry.MustRegister(inFlight{s.limiter})
	registry.MustRegister(s.versions()...)
	registry.MustRegister(newFeatures(s.options.Gates))
	registry.MustRegister(s.metrics.collectors()...)
	registry.MustRegister(s.access.collectors()...)
	registry.MustRegister(s.impersonator.Collectors()...)
	registry.MustRegister(s.options.Collectors...)
	return s.exposition(registry, process)
}

// exposition answers with the metrics of a registry and of others. A DELETE resets those of the registry.
func (s *Server) exposition(registry prometheus.Gatherer, others ...prometheus.Gatherer) http.Handler {
	since := &resetting{Gatherer: registry}
	all := append(prometheus.Gatherers{since}, others...)
	return since.page(promhttp.HandlerFor(gatherer{all, s.options.Metrics}, promhttp.HandlerOpts{ProcessStartTime: s.started}))
}

// versions returns the metrics about the running build.
func (s *Server) versions() []prometheus.Collector {
	one := func(name, help string, labels prometheus.Labels) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return 1 })
	}
	v := s.version()
	return []prometheus.Collector{
		one("kubernetes_build_info", "Always 1; the labels have the build information of /version.", prometheus.Labels{
			"major": v.Major, "minor": v.Minor, "git_version": v.GitVersion, "git_commit": v.GitCommit, "git_tree_state": v.GitTreeState,
			"build_date": v.BuildDate, "go_version": v.GoVersion, "compiler": v.Compiler, "platform": v.Platform,
		}),
		one("version_info", "Always 1; the labels have the binary, emulation and minimum compatibility versions.", prometheus.Labels{
			"component": "kube", "binary": kubernetes.Number, "emulation": v.EmulationMajor + "." + v.EmulationMinor,
			"min_compat": v.MinCompatibilityMajor + "." + v.MinCompatibilityMinor,
		}),
	}
}

// inFlight collects the numbers of requests in flight.
type inFlight struct{ limiter limiter }

var (
	servingDesc = prometheus.NewDesc("apiserver_current_inflight_requests",
		"Requests in flight, by kind (readOnly or mutating); watches only until they have begun.", []string{"request_kind"}, nil)
	waitingDesc = prometheus.NewDesc("apiserver_current_inqueue_requests",
		"Requests that wait in queues of priority levels, by kind (readOnly or mutating).", []string{"request_kind"}, nil)
)

// Describe implements prometheus.Collector.
func (f inFlight) Describe(to chan<- *prometheus.Desc) { to <- servingDesc; to <- waitingDesc }

// Collect implements prometheus.Collector.
func (f inFlight) Collect(to chan<- prometheus.Metric) {
	waiting, serving := f.limiter.inFlight()
	for i, kind := range []string{"readOnly", "mutating"} {
		to <- prometheus.MustNewConstMetric(servingDesc, prometheus.GaugeValue, float64(serving[i]), kind)
		to <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(waiting[i]), kind)
	}
}
