package admission

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

// Metrics measure the duration of plugins, under the metric name of Kubernetes.
type Metrics struct{ durations *prometheus.HistogramVec }

// NewMetrics returns Metrics that count from zero.
func NewMetrics() *Metrics {
	return &Metrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "apiserver_admission_controller_admission_duration_seconds",
		Help:    "Duration of admission plugins in seconds, by name, operation, type (admit or validate) and whether they rejected the request.",
		Buckets: []float64{.005, .025, .1, .5, 1, 2.5},
	}, []string{"name", "type", "operation", "rejected"})}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector { return []prometheus.Collector{m.durations} }

// operations are all operations of admission.
var operations = [...]registry.Operation{registry.Create, registry.Update, registry.Delete, registry.Connect}

// A timer observes one plugin as a mutator, a validator or a resolver. It holds the series: a
// lookup takes longer than many plugins.
type timer struct {
	metrics    *Metrics
	name, kind string // kind is admit or validate
	series     [len(operations)][2]atomic.Pointer[prometheus.Observer]
}

// add adds a plugin and observes each of its interfaces.
func (m *Metrics) add(to *registry.Plugins, name string, plugin any) {
	if p, ok := plugin.(registry.Mutator); ok {
		to.Mutators = append(to.Mutators, mutator{p, &timer{metrics: m, name: name, kind: "admit"}})
	}
	validate := &timer{metrics: m, name: name, kind: "validate"}
	if p, ok := plugin.(registry.Validator); ok {
		to.Validators = append(to.Validators, validator{p, validate})
	}
	if p, ok := plugin.(registry.Resolver); ok {
		to.Resolvers = append(to.Resolvers, resolver{p, validate})
	}
}

type mutator struct {
	plugin registry.Mutator
	timer  *timer
}

// Mutate implements registry.Mutator.
func (m mutator) Mutate(ctx context.Context, a *registry.Admission) error {
	begun := time.Now()
	err := m.plugin.Mutate(ctx, a)
	m.timer.took(a.Operation, begun, err)
	return err
}

type validator struct {
	plugin registry.Validator
	timer  *timer
}

// Validate implements registry.Validator.
func (v validator) Validate(ctx context.Context, a *registry.Admission) error {
	begun := time.Now()
	err := v.plugin.Validate(ctx, a)
	v.timer.took(a.Operation, begun, err)
	return err
}

type resolver struct {
	plugin registry.Resolver
	timer  *timer
}

// Resolve implements registry.Resolver.
func (r resolver) Resolve(ctx context.Context, a *registry.Admission) ([]resource.Mark, error) {
	begun := time.Now()
	marks, err := r.plugin.Resolve(ctx, a)
	r.timer.took(a.Operation, begun, err)
	return marks, err
}

// took observes a call that began at begun and ends now.
func (t *timer) took(operation registry.Operation, begun time.Time, err error) {
	d := time.Since(begun)
	row, column := 0, 0
	for row < len(operations)-1 && operations[row] != operation {
		row++
	}
	if err != nil {
		column = 1
	}
	at := &t.series[row][column]
	series := at.Load()
	if series == nil {
		o := t.metrics.durations.WithLabelValues(t.name, t.kind, string(operation), strconv.FormatBool(err != nil))
		series = &o
		at.Store(series)
	}
	(*series).Observe(d.Seconds())
}
