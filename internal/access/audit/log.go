package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// Options configure a Log.
type Options struct {
	// PolicyFile is the audit.k8s.io/v1 Policy. Without one nothing is logged.
	PolicyFile string
	File       FileOptions
	Webhook    WebhookOptions
}

// FileOptions configure the sink that writes a file.
type FileOptions struct {
	Path       string // "-" is standard output; "" for none
	MaxAge     int    // days that a rotated file is kept; 0 for no limit
	MaxBackups int    // rotated files that are kept; 0 for no limit
	MaxSize    int    // megabytes of a file before its rotation; 0 for no rotation
	Compress   bool   // compress rotated files
	Format     string
	Version    string
	Delivery   Delivery
}

// WebhookOptions configure the sink that sends events to a webhook.
type WebhookOptions struct {
	ConfigFile     string // kubeconfig; "" for none
	InitialBackoff time.Duration
	Version        string
	Delivery       Delivery
}

// Formats of a file.
const (
	JSON   = "json"
	Legacy = "legacy"
)

// Version is the only version of events.
var Version = auditv1.SchemeGroupVersion.String()

// Validate returns the errors of kube-apiserver for the options.
func (o *Options) Validate() error {
	var errs []error
	if f := &o.File; f.Path != "" {
		errs = append(errs, f.Delivery.validate("log"), validateVersion(f.Version))
		if f.Format != JSON && f.Format != Legacy {
			errs = append(errs, fmt.Errorf("invalid audit log format %s, allowed formats are %q", f.Format, []string{Legacy, JSON}))
		}
		for _, n := range []struct {
			flag  string
			value int
		}{{"maxage", f.MaxAge}, {"maxbackup", f.MaxBackups}, {"maxsize", f.MaxSize}} {
			if n.value < 0 {
				errs = append(errs, fmt.Errorf("--audit-log-%s %v can't be a negative number", n.flag, n.value))
			}
		}
	}
	if h := &o.Webhook; h.ConfigFile != "" {
		errs = append(errs, h.Delivery.validate("webhook"), validateVersion(h.Version))
	}
	return errors.Join(errs...)
}

func validateVersion(version string) error {
	gv, err := schema.ParseGroupVersion(version)
	if err == nil && gv != auditv1.SchemeGroupVersion {
		err = fmt.Errorf("invalid group version, allowed versions are %q", []schema.GroupVersion{auditv1.SchemeGroupVersion})
	}
	return err
}

// A Config is valid Options with the content of their files.
type Config struct {
	options Options
	policy  *Policy
	webhook *kubeconfig.Config // nil without a webhook
	log     *slog.Logger
}

// Read validates options and reads their files, without side effects. It returns nil for options without
// a policy or without a sink.
func Read(o Options, log *slog.Logger) (*Config, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &Config{options: o, log: log}
	var err error
	if o.PolicyFile != "" {
		if c.policy, err = ReadPolicy(o.PolicyFile, log); err != nil {
			return nil, err
		}
	}
	if o.Webhook.ConfigFile != "" {
		if c.webhook, err = kubeconfig.Open(o.Webhook.ConfigFile); err != nil {
			return nil, fmt.Errorf("initializing audit webhook: %w", err)
		}
	}
	for _, s := range []struct{ kind, given string }{{"log", o.File.Path}, {"webhook", o.Webhook.ConfigFile}} {
		if s.given != "" && c.policy == nil {
			log.Warn("No audit policy file provided, no events will be recorded for " + s.kind + " backend")
		}
	}
	if c.policy == nil || o.File.Path == "" && c.webhook == nil {
		return nil, nil
	}
	for _, d := range []*Delivery{&o.File.Delivery, &o.Webhook.Delivery} {
		if d.Mode == BlockingStrict && c.policy.omitsReceived() {
			log.Warn("the audit mode blocking-strict rejects no request whose rule omits the stage RequestReceived")
			break
		}
	}
	return c, nil
}

// A Log is the audit log of a server.
type Log struct {
	policy  *Policy
	sinks   []*sink
	log     *slog.Logger
	metrics *metrics
}

// Open returns the Log, or nil for nil. Connections to a webhook are made by dial.
func (c *Config) Open(dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Log, error) {
	if c == nil {
		return nil, nil
	}
	l := &Log{policy: c.policy, log: c.log, metrics: newMetrics()}
	if o := &c.options.File; o.Path != "" {
		f, err := openFile(o, c.log)
		if err != nil {
			return nil, err
		}
		l.add("log", f, o.Delivery, o.Format == Legacy)
	}
	if o := &c.options.Webhook; c.webhook != nil {
		l.add("webhook", newWebhook(c.webhook, o.InitialBackoff, dial), o.Delivery, false)
	}
	return l, nil
}

// Close writes the events that wait, and closes the sinks.
func (l *Log) Close() {
	if l == nil {
		return
	}
	for _, s := range l.sinks {
		s.close()
	}
}

// Collectors returns the metrics. Those of a nil Log stay at 0.
func (l *Log) Collectors() []prometheus.Collector {
	if l == nil {
		return newMetrics().collectors()
	}
	return l.metrics.collectors()
}

// failed counts and logs events that a plugin has lost.
func (l *Log) failed(plugin string, err error, events int) {
	l.metrics.errors.WithLabelValues(plugin).Add(float64(events))
	l.log.Error("audit events are lost", "plugin", plugin, "events", events, "error", err)
}

// metrics are the metrics of a Log, under Kubernetes' names.
type metrics struct {
	events, rejected prometheus.Counter
	errors, levels   *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		events:   prometheus.NewCounter(prometheus.CounterOpts{Name: "apiserver_audit_event_total", Help: "Audit events."}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{Name: "apiserver_audit_requests_rejected_total", Help: "Requests rejected because their audit event could not be stored."}),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_audit_error_total", Help: "Audit events that were lost, by plugin."}, []string{"plugin"}),
		levels:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_audit_level_total", Help: "Requests by audit level."}, []string{"level"}),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.events, m.rejected, m.errors, m.levels}
}

// standardOutput is the path of standard output.
const standardOutput = "-"

// openFile opens the file of a Log, and creates it and its folder.
func openFile(o *FileOptions, log *slog.Logger) (writer, error) {
	if o.Path == standardOutput {
		return output{os.Stdout}, nil
	}
	return openRotating(o, log)
}
