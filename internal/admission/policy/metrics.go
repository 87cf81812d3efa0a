package policy

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/schema/celpolicy"
)

// Metrics count decisions of policies, under the metric names of Kubernetes.
type Metrics struct {
	validated, mutated outcomes
	// conditions count match conditions, also those of webhooks.
	conditions *match.Metrics
}

// outcomes count the results of one kind of policies and measure their duration.
type outcomes struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newOutcomes(kind string, labels ...string) outcomes {
	labels = append([]string{"policy", "policy_binding", "error_type"}, labels...)
	subsystem := kind + "_admission_policy"
	return outcomes{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "apiserver", Subsystem: subsystem, Name: "check_total",
			Help: "Evaluated expressions of admission policies, by policy, binding and result."}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "apiserver", Subsystem: subsystem, Name: "check_duration_seconds",
			Help:    "Duration of the evaluation of policy expressions in seconds, by policy, binding and result.",
			Buckets: []float64{0.0000005, 0.001, 0.01, 0.1, 1.0}}, labels),
	}
}

func (o *outcomes) observe(took time.Duration, labels ...string) {
	o.total.WithLabelValues(labels...).Inc()
	o.seconds.WithLabelValues(labels...).Observe(took.Seconds())
}

// NewMetrics returns Metrics that count from zero. Match conditions are counted in conditions.
func NewMetrics(conditions *match.Metrics) *Metrics {
	return &Metrics{validated: newOutcomes("validating", "enforcement_action"), mutated: newOutcomes("mutating"), conditions: conditions}
}

// Collectors returns the collectors to register, without those of match conditions.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.validated.total, m.validated.seconds, m.mutated.total, m.mutated.seconds}
}

// A matcher reports whether match conditions are met, and counts the evaluation.
type matcher func(ctx context.Context, c *celpolicy.Conditions, about *celpolicy.About) (bool, error)

// matcher returns the matcher of a policy. As in Kubernetes, both kinds of policies count as
// validating.
func (p *plugin[C]) matcher(policy string) matcher {
	return func(ctx context.Context, c *celpolicy.Conditions, about *celpolicy.About) (bool, error) {
		if c == nil {
			return true, nil
		}
		begun := time.Now()
		matches, broken, err := c.Match(ctx, *about)
		p.parts.Metrics.conditions.Evaluated(match.ConditionsOf{Name: policy, Kind: "policy", Type: "validate", Operation: about.Admission.Operation}, time.Since(begun), broken)
		return matches, err
	}
}

// validation counts a failed validation, by the action of its binding.
func (m *Metrics) validation(p *policy[validating], b *binding, d *decision, action string) {
	m.validated.observe(d.took, p.name, b.name, errorType(d.message), action)
}

// mutation counts a mutation.
func (m *Metrics) mutation(i *invocation, took time.Duration, err error) {
	what := "no_error"
	if err != nil {
		what = errorType(err.Error())
	}
	m.mutated.observe(took, i.of.name, i.binding, what)
}

// errorType returns the type of an error. As in Kubernetes, it is found from the message. A denial
// because an expression is false also has a type.
func errorType(message string) string {
	switch {
	case strings.HasPrefix(message, "compilation"):
		return "compile_error"
	case strings.HasPrefix(message, "validation failed due to running out of cost budget"):
		return "out_of_budget"
	}
	return "invalid_error"
}
