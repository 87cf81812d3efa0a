package policy

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/schema/celpolicy"
)

// Metrics count what policies decide, under the names that Kubernetes has for that.
type Metrics struct {
	validated, mutated outcomes
	// conditions count match conditions, of webhooks too.
	conditions *match.Metrics
}

// outcomes are those of one kind of policies: how many there were, and how long they took.
type outcomes struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newOutcomes(kind string, labels ...string) outcomes {
	labels = append([]string{"policy", "policy_binding", "error_type"}, labels...)
	subsystem := kind + "_admission_policy"
	return outcomes{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "apiserver", Subsystem: subsystem, Name: "check_total",
			Help: "Expressions of policies that were evaluated, by policy and binding, and by what came of it."}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "apiserver", Subsystem: subsystem, Name: "check_duration_seconds",
			Help:    "How long expressions of policies took, by policy and binding, and by what came of it.",
			Buckets: []float64{0.0000005, 0.001, 0.01, 0.1, 1.0}}, labels),
	}
}

func (o *outcomes) observe(took time.Duration, labels ...string) {
	o.total.WithLabelValues(labels...).Inc()
	o.seconds.WithLabelValues(labels...).Observe(took.Seconds())
}

// NewMetrics returns Metrics that count from zero. The match conditions of policies are counted by conditions.
func NewMetrics(conditions *match.Metrics) *Metrics {
	return &Metrics{validated: newOutcomes("validating", "enforcement_action"), mutated: newOutcomes("mutating"), conditions: conditions}
}

// Collectors are what is to be registered, without that of match conditions.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.validated.total, m.validated.seconds, m.mutated.total, m.mutated.seconds}
}

// A matcher reports whether match conditions are met, and counts that.
type matcher func(ctx context.Context, c *celpolicy.Conditions, about *celpolicy.About) (bool, error)

// matcher returns what evaluates the match conditions of a policy. As in Kubernetes, policies of both
// kinds count as validating there.
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

// validation counts an expression that a binding acts on, by the action.
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

// errorType returns the type of an error, which is told by its words, as Kubernetes does. What is
// denied because an expression is false counts as one, too.
func errorType(message string) string {
	switch {
	case strings.HasPrefix(message, "compilation"):
		return "compile_error"
	case strings.HasPrefix(message, "validation failed due to running out of cost budget"):
		return "out_of_budget"
	}
	return "invalid_error"
}
