package serviceaccount

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts uses of legacy and stale tokens.
type Metrics struct {
	legacy, stale, valid, manual, generated, invalid prometheus.Counter
}

// NewMetrics returns the Metrics of a server.
func NewMetrics() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "serviceaccount", Name: name, Help: help})
	}
	return &Metrics{
		legacy:    counter("legacy_tokens_total", "Uses of tokens without an audience."),
		stale:     counter("stale_tokens_total", "Uses of pod tokens after their requested lifetime."),
		valid:     counter("valid_tokens_total", "Uses of pod tokens within their requested lifetime."),
		manual:    counter("legacy_manual_token_uses_total", "Uses of tokens of manually created Secrets."),
		generated: counter("legacy_auto_token_uses_total", "Uses of tokens of auto-generated Secrets."),
		invalid:   counter("invalid_legacy_auto_token_uses_total", "Uses of tokens of Secrets that are marked as invalid."),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.legacy, m.stale, m.valid, m.manual, m.generated, m.invalid}
}
