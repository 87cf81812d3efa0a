package webhook

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count calls under the names of client-go. It is kube-apiserver's client for webhooks.
type metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total", Help: "Calls of admission and conversion webhooks, by code, method and host; <error> without an answer.",
		}, []string{"code", "method", "host"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rest_client_request_duration_seconds", Help: "Duration in seconds of calls of admission and conversion webhooks, by verb and host.",
			Buckets: []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60},
		}, []string{"verb", "host"}),
	}
}

// Collectors returns the collectors to register.
func (c *Client) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.metrics.requests, c.metrics.durations}
}

// do sends a request and counts it. host is that of the configuration, also if a proxy changes it.
func (m *metrics) do(client *http.Client, r *http.Request) (*http.Response, error) {
	host, begun, code := r.URL.Host, time.Now(), "<error>"
	response, err := client.Do(r)
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	m.requests.WithLabelValues(code, r.Method, host).Inc()
	m.durations.WithLabelValues(r.Method, host).Observe(time.Since(begun).Seconds())
	return response, err
}
