// Package histogram creates histograms that depend on the gate NativeHistograms.
//
// With the gate, a histogram has native buckets besides its classic ones: exponential buckets that Prometheus
// reads as protobuf. The text format has the classic buckets only.
//
// kube-apiserver creates some histograms before it applies its gates: those of admission, authentication,
// encryption, outgoing calls and work queues. They have no native buckets, there and here.
package histogram

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/gate"
)

// Native buckets are those of Kubernetes: each bound is at most 1.1 times the one before it.
const (
	factor     = 1.1
	maxBuckets = 160
)

// NewVec returns a histogram with labels.
func NewVec(gates *gate.Set, o prometheus.HistogramOpts, labels []string) *prometheus.HistogramVec {
	if gates.On(gate.NativeHistograms) {
		o.NativeHistogramBucketFactor, o.NativeHistogramMaxBucketNumber = factor, maxBuckets
	}
	return prometheus.NewHistogramVec(o, labels)
}
