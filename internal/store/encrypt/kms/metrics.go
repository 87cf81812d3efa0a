package kms

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/utils/lru"
)

const (
	fromStorage = "from_storage"
	toStorage   = "to_storage"
)

// Metrics are those of all KMS plugins of a server, with kube-apiserver's names and labels.
type Metrics struct {
	misses       prometheus.Counter
	generation   prometheus.Histogram
	unGenerated  prometheus.Counter
	calls        *prometheus.HistogramVec
	used, polled *keyIDs
	invalidKeyID *prometheus.CounterVec
	cached       *prometheus.GaugeVec
	filled       prometheus.Gauge
}

// NewMetrics returns the Metrics of a server with an identity.
func NewMetrics(server string) *Metrics {
	const storage, envelope = "apiserver_storage_", "apiserver_envelope_encryption_"
	name, as := "provider_name", []string{"provider_name", "key_id_hash", "apiserver_id_hash"}
	last := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: envelope + name, Help: help}, labels)
	}
	return &Metrics{
		misses: prometheus.NewCounter(prometheus.CounterOpts{Name: storage + "envelope_transformation_cache_misses_total",
			Help: "Encrypted data keys or seeds that were not in the cache."}),
		generation: prometheus.NewHistogram(prometheus.HistogramOpts{Name: storage + "data_key_generation_duration_seconds",
			Help: "Time to generate a data key or seed, in seconds.", Buckets: prometheus.ExponentialBuckets(5e-6, 2, 14)}),
		unGenerated: prometheus.NewCounter(prometheus.CounterOpts{Name: storage + "data_key_generation_failures_total",
			Help: "Data keys or seeds that could not be generated."}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: envelope + "kms_operations_latency_seconds",
			Help: "Duration of calls of KMS plugins in seconds, by the code of gRPC.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 20)},
			[]string{name, "method_name", "grpc_status_code"}),
		used: newKeyIDs(server,
			prometheus.NewCounterVec(prometheus.CounterOpts{Name: envelope + "key_id_hash_total",
				Help: "Uses of a key ID of a KMS."}, append([]string{"transformation_type"}, as...)),
			last("key_id_hash_last_timestamp_seconds", "Time of the last use of a key ID of a KMS.", append([]string{"transformation_type"}, as...)...)),
		polled: newKeyIDs(server, nil, last("key_id_hash_status_last_timestamp_seconds", "Time of the last status of a KMS with a key ID.", as...)),
		invalidKeyID: prometheus.NewCounterVec(prometheus.CounterOpts{Name: envelope + "invalid_key_id_from_status_total",
			Help: "Invalid key IDs in the status of a KMS, by error."}, []string{name, "error"}),
		cached: last("dek_source_cache_size", "Encrypted data keys and seeds in the cache.", name),
		filled: prometheus.NewGauge(prometheus.GaugeOpts{Name: envelope + "dek_cache_fill_percent", Help: "Part of the cache of a KMS plugin with version 1 of the protocol that has keys."}),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.misses, m.generation, m.unGenerated, m.calls, m.used.total, m.used.last, m.polled.last, m.invalidKeyID, m.cached, m.filled}
}

// Sum returns a hash of a text that logs and metrics must not reveal; "" for "".
func Sum(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// generated records the generation of a seed.
func (m *Metrics) generated(start time.Time) { m.generation.Observe(time.Since(start).Seconds()) }

// observe returns an interceptor that measures the calls of a provider.
func (m *Metrics) observe(provider string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, c *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		start := time.Now()
		err := call(ctx, method, request, answer, c, o...)
		m.calls.WithLabelValues(provider, method, grpcstatus.Code(err).String()).Observe(time.Since(start).Seconds())
		return err
	}
}

// maxKeyIDs limits the series of key IDs, whose number is that of rotations.
const maxKeyIDs = 100

// keyIDs are the metrics of the key IDs that were used last.
type keyIDs struct {
	server string
	total  *prometheus.CounterVec // nil for none
	last   *prometheus.GaugeVec

	mu   sync.Mutex
	seen *lru.Cache // the values of labels
}

// labels are the values of labels. use is "" in metrics of the status.
type labels struct{ use, provider, keyID, server string }

func (l labels) values() []string {
	if l.use == "" {
		return []string{l.provider, l.keyID, l.server}
	}
	return []string{l.use, l.provider, l.keyID, l.server}
}

func newKeyIDs(server string, total *prometheus.CounterVec, last *prometheus.GaugeVec) *keyIDs {
	k := &keyIDs{server: Sum(server), total: total, last: last}
	k.seen = lru.NewWithEvictionFunc(maxKeyIDs, func(key lru.Key, _ any) {
		old := key.(labels).values()
		k.last.DeleteLabelValues(old...)
		if k.total != nil {
			k.total.DeleteLabelValues(old...)
		}
	})
	return k
}

// see records the use of a key ID.
func (k *keyIDs) see(use, provider, keyID string) {
	l := labels{use, provider, Sum(keyID), k.server}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen.Add(l, nil)
	k.last.WithLabelValues(l.values()...).SetToCurrentTime()
	if k.total != nil {
		k.total.WithLabelValues(l.values()...).Inc()
	}
}
