package server

import (
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/span"
)

// traced starts the span of an authenticated request. The trace of a privileged client continues. That of
// another client does not, since it could make the server sample every request: its span begins a trace, which
// links to that of the client.
func (s *Server) traced(next handler) handler {
	if s.options.Traces == nil {
		return next
	}
	tracer := s.options.Traces.Tracer(span.Scope)
	return func(x *exchange, r *http.Request) {
		ctx := span.Headers.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(x.started)}
		if !slices.ContainsFunc(x.User.Groups, continuesTraces) {
			options = append(options, trace.WithNewRoot())
			if of := trace.SpanContextFromContext(ctx); of.IsValid() && of.IsRemote() {
				options = append(options, trace.WithLinks(trace.Link{SpanContext: of}))
			}
		}
		ctx, own := tracer.Start(ctx, spanName(r.Method, &x.Info), options...)
		defer own.End()
		if !own.IsRecording() {
			next(x, r.WithContext(ctx))
			return
		}
		own.SetAttributes(span.Received(r)...)
		own.SetAttributes(span.AuditID(x.AuditID))
		next(x, r.WithContext(ctx))
		received, _ := x.BodySize()
		span.Answered(own, x.answered(), int64(received), x.size)
	}
}

// continuesTraces reports whether the traces of a group's members continue in the server.
func continuesTraces(group string) bool {
	return group == "system:masters" || group == "system:monitoring"
}

// spanName returns the name of a request's span: the method and, for a resource, a path without the names of
// objects.
func spanName(method string, info *request.Info) string {
	if !info.IsResource {
		return method
	}
	name := method + " /api"
	if info.Group != "" {
		name += "s/" + info.Group
	}
	name += "/" + info.Version
	if info.Namespace != "" {
		name += "/namespaces/{:namespace}"
	}
	name += "/" + info.Resource
	if info.Name != "" {
		name += "/{:name}"
	}
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	return name
}

// stage adds a span around a filter and those after it.
func (s *Server) stage(name string, h handler) handler {
	if s.options.Traces == nil {
		return h
	}
	tracer := s.options.Traces.Tracer(span.Scope)
	return func(x *exchange, r *http.Request) {
		ctx, within := tracer.Start(r.Context(), name)
		defer within.End()
		h(x, r.WithContext(ctx))
	}
}
