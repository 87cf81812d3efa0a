package server

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/histogram"
)

// accessMetrics counts authentications and authorizations, under Kubernetes' names.
type accessMetrics struct {
	users           *prometheus.CounterVec
	authentications outcomes
	authorizations  outcomes
}

func newAccessMetrics(gates *gate.Set) *accessMetrics {
	return &accessMetrics{
		users: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authenticated_user_requests", Help: "Authenticated requests, by class of the username (such as admin, kubelet, email_id, other).",
		}, []string{"username"}),
		authentications: newOutcomes(gates, "authentication_attempts", "authentication_duration_seconds", "Authentications"),
		authorizations:  newOutcomes(gates, "authorization_attempts_total", "authorization_duration_seconds", "Authorizations"),
	}
}

func (m *accessMetrics) collectors() []prometheus.Collector {
	a, z := &m.authentications, &m.authorizations
	return []prometheus.Collector{m.users, a.count, a.took, z.count, z.took}
}

// authenticated counts an authentication that started at begun.
func (m *accessMetrics) authenticated(name string, ok bool, err error, begun time.Time) {
	result := "success"
	switch {
	case err != nil:
		result = "error"
	case !ok:
		result = "failure"
	default:
		m.users.WithLabelValues(kindOfName(name)).Inc()
	}
	m.authentications.observe(result, begun)
}

// authorized counts an authorization that started at begun.
func (m *accessMetrics) authorized(decision authz.Decision, err error, begun time.Time) {
	result := "no-opinion"
	switch {
	case decision == authz.Allow:
		result = "allowed"
	case err != nil:
		result = "error"
	case decision == authz.Deny:
		result = "denied"
	}
	m.authorizations.observe(result, begun)
}

// kindOfName returns the class of a user name. Metrics have no user names: there may be many, and
// some are secret.
func kindOfName(name string) string {
	switch {
	case name == "admin", name == "client", name == "kube_proxy", name == "kubelet", name == "system:serviceaccount:kube-system:default":
		return name
	case strings.Contains(name, "@"):
		return "email_id"
	default:
		return "other"
	}
}

// outcomes counts the results of a step of every request, and its duration.
type outcomes struct {
	count *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newOutcomes(gates *gate.Set, count, took, what string) outcomes {
	labels := []string{"result"}
	return outcomes{
		count: prometheus.NewCounterVec(prometheus.CounterOpts{Name: count, Help: what + " of requests, by result."}, labels),
		took: histogram.NewVec(gates, prometheus.HistogramOpts{
			Name: took, Help: what + " of requests: duration in seconds, by result.", Buckets: prometheus.ExponentialBuckets(.001, 2, 15),
		}, labels),
	}
}

func (o *outcomes) observe(result string, begun time.Time) {
	o.count.WithLabelValues(result).Inc()
	o.took.WithLabelValues(result).Observe(time.Since(begun).Seconds())
}
