package external

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
)

// metrics are those of calls to the external signer, with kube-apiserver's names and labels.
type metrics struct {
	signed, fetched   *prometheus.CounterVec
	fetchedAt, dataAt prometheus.Gauge
	durations         *prometheus.HistogramVec
}

func newMetrics() metrics {
	const namespace, subsystem = "apiserver", "externaljwt"
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: "[ALPHA] " + help}, []string{"code"})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: "[ALPHA] " + help})
	}
	return metrics{
		signed:    counter("sign_request_total", "Sign requests to the external signer, by code."),
		fetched:   counter("fetch_keys_request_total", "Requests for the keys of the external signer, by code."),
		fetchedAt: gauge("fetch_keys_success_timestamp", "Time of the last successful fetch of keys, in seconds."),
		dataAt:    gauge("fetch_keys_data_timestamp", "Time of the data of the last successful fetch of keys, in seconds."),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "request_duration_seconds",
			Help:    "[ALPHA] Duration of calls to the external signer in seconds.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"method", "code"}),
	}
}

// observe measures one call.
func (m metrics) observe(ctx context.Context, method string, request, answer any, c *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	start := time.Now()
	err := call(ctx, method, request, answer, c, o...)
	m.durations.WithLabelValues(method, code(err)).Observe(time.Since(start).Seconds())
	return err
}
