package encrypt

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/anykind/anykind/internal/store/encrypt/kms"
)

// Metrics are those of encryption, with kube-apiserver's names and labels.
type Metrics struct {
	*kms.Metrics
	operations *prometheus.CounterVec
	durations  *prometheus.HistogramVec
}

// NewMetrics returns the Metrics of a server with an identity.
func NewMetrics(server string) *Metrics {
	const prefix = "apiserver_storage_transformation_"
	return &Metrics{
		Metrics: kms.NewMetrics(server),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "operations_total",
			Help: "Values that were encrypted or decrypted, by resource, provider and status."}, []string{"resource", "transformation_type", "transformer_prefix", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "duration_seconds",
			Help: "Time to encrypt or decrypt a value, in seconds.", Buckets: prometheus.ExponentialBuckets(5e-6, 2, 25)}, []string{"transformation_type", "transformer_prefix"}),
	}
}

// Collectors returns the collectors to register; none for nil.
func (m *Metrics) Collectors() []prometheus.Collector {
	if m == nil {
		return nil
	}
	return append(m.Metrics.Collectors(), m.operations, m.durations)
}

// record records a transformation of a value of a resource, from or to storage, by a provider.
func (m *Metrics) record(resource, kind, provider string, start time.Time, err error) {
	m.operations.WithLabelValues(resource, kind, provider, code(err)).Inc()
	if err == nil {
		m.durations.WithLabelValues(kind, provider).Observe(time.Since(start).Seconds())
	}
}

// code returns the label of an outcome.
func code(err error) string {
	if c := grpcstatus.Code(err); c != codes.Unknown {
		return c.String()
	}
	return "unknown-non-grpc"
}
