package flags

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/access/audit"
)

// addAudit adds the flags of the audit log.
func (f *Serve) addAudit(flags *pflag.FlagSet) {
	o := &f.audit
	flags.StringVar(&o.PolicyFile, "audit-policy-file", "",
		"file with an audit.k8s.io/v1 Policy: rules that select requests and the details that are logged; without one nothing is logged")
	file := &o.File
	flags.StringVar(&file.Path, "audit-log-path", "", "file for audit events; - is standard output")
	flags.IntVar(&file.MaxAge, "audit-log-maxage", 366, "days that a rotated file is kept; 0 for no limit")
	flags.IntVar(&file.MaxBackups, "audit-log-maxbackup", 100, "number of rotated files that are kept; 0 for no limit")
	flags.IntVar(&file.MaxSize, "audit-log-maxsize", 100, "megabytes of the file before it is rotated; 0 for no rotation")
	flags.BoolVar(&file.Compress, "audit-log-compress", false, "compress rotated files with gzip")
	flags.StringVar(&file.Format, "audit-log-format", audit.JSON, "format of the events: json, or legacy for a line of text")
	flags.StringVar(&file.Version, "audit-log-version", audit.Version, "API version of the events in the file")
	addDelivery(flags, "log", &file.Delivery, audit.Delivery{Mode: audit.Blocking, BufferSize: 10000, MaxBatchSize: 1})
	hook := &o.Webhook
	flags.StringVar(&hook.ConfigFile, "audit-webhook-config-file", "", "kubeconfig of a webhook that receives the events")
	flags.DurationVar(&hook.InitialBackoff, "audit-webhook-initial-backoff", 10*time.Second, "pause before the first retry of a request to the webhook")
	flags.DurationVar(&hook.InitialBackoff, "audit-webhook-batch-initial-backoff", 10*time.Second, "pause before the first retry of a request to the webhook")
	_ = flags.MarkDeprecated("audit-webhook-batch-initial-backoff", "use --audit-webhook-initial-backoff") // the flag exists
	flags.StringVar(&hook.Version, "audit-webhook-version", audit.Version, "API version of the events for the webhook")
	addDelivery(flags, "webhook", &hook.Delivery, audit.Delivery{
		Mode: audit.Batch, BufferSize: 10000, MaxBatchSize: 400, MaxBatchWait: 30 * time.Second, Throttle: true, ThrottleQPS: 10, Burst: 15,
	})
}

// addDelivery adds the flags of the way to a sink.
func addDelivery(flags *pflag.FlagSet, to string, d *audit.Delivery, defaults audit.Delivery) {
	name := "audit-" + to + "-"
	flags.StringVar(&d.Mode, name+"mode", defaults.Mode,
		"one of "+strings.Join(audit.Modes, ", ")+": batch buffers events and sends them while requests go on; blocking makes a request wait; blocking-strict also rejects a request whose first event cannot be sent")
	flags.IntVar(&d.BufferSize, name+"batch-buffer-size", defaults.BufferSize, "number of events that may wait in mode batch; further ones are lost")
	flags.IntVar(&d.MaxBatchSize, name+"batch-max-size", defaults.MaxBatchSize, "maximum number of events of a batch")
	flags.DurationVar(&d.MaxBatchWait, name+"batch-max-wait", defaults.MaxBatchWait, "maximum time before a batch that is not full is sent")
	flags.BoolVar(&d.Throttle, name+"batch-throttle-enable", defaults.Throttle, "limit the rate of batches")
	flags.Float32Var(&d.ThrottleQPS, name+"batch-throttle-qps", defaults.ThrottleQPS, "maximum average number of batches per second")
	flags.IntVar(&d.Burst, name+"batch-throttle-burst", defaults.Burst, "maximum number of batches at the same moment after a time below the rate")
	flags.BoolVar(&d.Truncate, name+"truncate-enabled", false, "remove the objects of the request and the answer from events that are too large, and drop events that are still too large")
	flags.Int64Var(&d.MaxBatchSum, name+"truncate-max-batch-size", 10<<20, "checked only: as in kube-apiserver, events are truncated before they are batched; not smaller than the maximum size of an event")
	flags.Int64Var(&d.MaxEventSize, name+"truncate-max-event-size", 100<<10, "maximum size of an event in bytes")
}
