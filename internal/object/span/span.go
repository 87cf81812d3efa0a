// Package span starts the spans of a trace inside the server.
//
// A traced request has its span in the context. Without one, a span costs a lookup in the context. So it is
// in a server without a tracing configuration.
//
// The package does not decide which requests are traced, and exports nothing.
package span

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the instrumentation scope of all spans.
const Scope = "github.com/anykind/anykind"

// Headers reads and writes the trace context in headers, as W3C Trace Context defines.
var Headers propagation.TraceContext

// Start starts a span within the one of the context. The caller ends it, whether it records or not. Callers set
// attributes only if it records.
func Start(ctx context.Context, name string) (context.Context, trace.Span) {
	within := trace.SpanFromContext(ctx)
	if !within.IsRecording() {
		return ctx, silent
	}
	return within.TracerProvider().Tracer(Scope).Start(ctx, name)
}

// silent records nothing.
var silent = trace.SpanFromContext(context.Background())

// End ends a span, and records the error of its work.
func End(s trace.Span, err error) {
	if err != nil && s.IsRecording() {
		s.AddEvent("exception", trace.WithAttributes(attribute.String("exception.message", err.Error())))
	}
	s.End()
}

// Replace sets the span of the context as the parent in the headers, if there is one.
func Replace(ctx context.Context, to http.Header) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		to.Del("Tracestate") // of the client, whose trace may be another one
		Headers.Inject(ctx, propagation.HeaderCarrier(to))
	}
}
