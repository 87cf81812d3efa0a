package certificates

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

// Metrics count requested and issued durations of certificates, under the metric names of
// Kubernetes.
type Metrics struct{ requested, honored *prometheus.CounterVec }

// NewMetrics returns Metrics that count from zero.
func NewMetrics() *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_certificates_registry_" + name, Help: help}, []string{"signerName"})
	}
	return &Metrics{
		requested: counter("csr_requested_duration_total", "Certificates issued for requests with a duration, by signer; other for signers outside kubernetes.io."),
		honored:   counter("csr_honored_duration_total", "Certificates issued with the requested duration, within a tolerance, by signer."),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requested, m.honored}
}

// ownSigners are the signers of Kubernetes. Metrics have no other label values, since clients could
// create any number of them.
var ownSigners = []string{
	certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName,
	"kubernetes.io/legacy-unknown",
}

// wrote counts a request whose certificate was just stored.
func (m *Metrics) wrote(c *resource.Change) {
	seconds, asked := kind.Value(c.Old, "spec", "expirationSeconds").(int64)
	issued := kind.Text(c.Object, "status", "certificate")
	if !asked || c.Subresource != "status" || issued == "" || kind.Text(c.Old, "status", "certificate") != "" {
		return
	}
	signer := kind.Text(c.Old, "spec", "signerName")
	if !slices.Contains(ownSigners, signer) {
		signer = "other"
	}
	m.requested.WithLabelValues(signer).Inc()
	if isFor(issued, time.Duration(seconds)*time.Second) {
		m.honored.WithLabelValues(signer).Inc()
	}
}

const (
	// mostBackdated is the tolerated backdating of a certificate for clock skew.
	mostBackdated = 5 * time.Minute
	// tolerance is the divisor of a duration for the tolerated difference.
	tolerance = 20
)

// isFor reports whether the first of the stored certificates is valid for a duration.
func isFor(issued string, wanted time.Duration) bool {
	text, err := base64.StdEncoding.DecodeString(issued)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	missed := certificate.NotAfter.Sub(certificate.NotBefore) - wanted
	return missed.Abs() < mostBackdated+wanted/tolerance
}
