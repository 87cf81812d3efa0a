package oidc

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/network/configfile"
)

// Metrics has the latency of authentication, the key sets of issuers, and the configuration in
// force, under the names of Kubernetes.
type Metrics struct {
	latency   *prometheus.HistogramVec
	fetched   *prometheus.GaugeVec
	keySet    *prometheus.GaugeVec
	config    *configfile.Metrics
	serverSum string
}

// NewMetrics returns the Metrics of a server.
func NewMetrics(server string) *Metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	return &Metrics{
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_authentication_jwt_authenticator_latency_seconds",
			Help:    "Duration of the authentication of uncached JWTs in seconds, by result and issuer.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"result", "jwt_issuer_hash"}),
		fetched: gauge("apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
			"Time of the last fetch of the keys of an issuer, by result.", "result", "jwt_issuer_hash", "apiserver_id_hash"),
		keySet: gauge("apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
			"Hash of the last fetched keys of an issuer.", "jwt_issuer_hash", "apiserver_id_hash", "hash"),
		config:    configfile.NewMetrics("authentication", server),
		serverSum: configfile.Sum([]byte(server)),
	}
}

// Collectors returns the collectors to register; none for nil.
func (m *Metrics) Collectors() []prometheus.Collector {
	if m == nil {
		return nil
	}
	return append(m.config.Collectors(), m.latency, m.fetched, m.keySet)
}

func result(err error) string {
	if err != nil {
		return "failure"
	}
	return "success"
}

func (m *Metrics) observe(issuer string, begun time.Time, err error) {
	m.latency.WithLabelValues(result(err), configfile.Sum([]byte(issuer))).Observe(time.Since(begun).Seconds())
}

// A recorder records key fetches of one issuer.
type recorder struct {
	metrics *Metrics
	issuer  string
}

func (m *Metrics) jwks(issuer string) *recorder { return &recorder{m, configfile.Sum([]byte(issuer))} }

// record records the result of a key fetch unless ctx has ended.
func (r *recorder) record(ctx context.Context, body []byte, err error) {
	if r == nil || ctx.Err() != nil {
		return
	}
	m := r.metrics
	m.fetched.WithLabelValues(result(err), r.issuer, m.serverSum).SetToCurrentTime()
	if err == nil {
		m.keySet.DeletePartialMatch(prometheus.Labels{"jwt_issuer_hash": r.issuer})
		m.keySet.WithLabelValues(r.issuer, m.serverSum, configfile.Sum(body)).Set(1)
	}
}

// forget removes the metrics of a dropped issuer.
func (m *Metrics) forget(issuer string) {
	labels := prometheus.Labels{"jwt_issuer_hash": configfile.Sum([]byte(issuer))}
	m.fetched.DeletePartialMatch(labels)
	m.keySet.DeletePartialMatch(labels)
}
