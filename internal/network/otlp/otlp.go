// Package otlp exports traces to a collector, with OTLP over gRPC, as a TracingConfiguration configures.
//
// It knows the configuration file, the sampling and the connection. Package span and the server start the spans.
package otlp

import (
	"context"
	"log/slog"
	"net"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

// service is the name of the server in traces, as that of a kube-apiserver.
const service = "apiserver"

// Options of an exporter.
type Options struct {
	// Instance identifies this server among those that export to the collector.
	Instance string
	// Dial connects to the collector; nil connects directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Log  *slog.Logger
}

// A Provider samples spans, and exports them in the background. It never delays a request: beyond 2048 waiting
// spans, it drops new ones.
type Provider struct {
	provider *sdk.TracerProvider
	log      *slog.Logger
}

// Open returns a Provider. It connects in the background, and again after a failure.
func Open(ctx context.Context, c *Configuration, o Options) (*Provider, error) {
	with := []otlptracegrpc.Option{otlptracegrpc.WithInsecure()}
	if c.Endpoint != nil {
		with = append(with, otlptracegrpc.WithEndpoint(*c.Endpoint))
	}
	if o.Dial != nil {
		with = append(with, otlptracegrpc.WithDialOption(grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return o.Dial(ctx, "tcp", address)
		})))
	}
	exporter, err := otlptracegrpc.New(ctx, with...)
	if err != nil {
		return nil, err
	}
	return newProvider(c, o, exporter), nil
}

func newProvider(c *Configuration, o Options, exporter sdk.SpanExporter) *Provider {
	sampler := sdk.NeverSample()
	if rate := c.SamplingRatePerMillion; rate != nil && *rate > 0 {
		sampler = sdk.TraceIDRatioBased(float64(*rate) / perMillion)
	}
	return &Provider{log: o.Log, provider: sdk.NewTracerProvider(
		sdk.WithSampler(sdk.ParentBased(sampler)),
		sdk.WithBatcher(&reported{SpanExporter: exporter, log: o.Log}),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", service), attribute.String("service.instance.id", o.Instance))),
	)}
}

// reported logs failures of an exporter. The SDK would report them to a handler of the whole process.
type reported struct {
	sdk.SpanExporter
	log    *slog.Logger
	next   time.Time // of a line in the log
	failed int       // spans since the last line
}

// pause is the time between two lines in the log about failed exports.
const pause = time.Minute

// ExportSpans implements sdk.SpanExporter. The SDK calls it one call at a time.
func (r *reported) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	r.failed += len(spans)
	if now := time.Now(); now.After(r.next) {
		r.log.Warn("the collector of traces did not accept spans, and they are lost", "spans", r.failed, "error", err)
		r.next, r.failed = now.Add(pause), 0
	}
	return nil
}

// Tracers returns the provider of spans, which is nil for a nil Provider.
func (p *Provider) Tracers() trace.TracerProvider {
	if p == nil {
		return nil
	}
	return p.provider
}

// Close exports the waiting spans, until ctx ends.
func (p *Provider) Close(ctx context.Context) {
	if err := p.provider.Shutdown(ctx); err != nil {
		p.log.Warn("the last spans were not exported", "error", err)
	}
}
