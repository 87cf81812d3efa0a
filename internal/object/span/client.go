package span

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns a transport that sends requests within spans of their own, and with the headers of these
// spans. Without a span in the context, it returns its argument.
func Transport(ctx context.Context, to http.RoundTripper) http.RoundTripper {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return to
	}
	return transport{to}
}

type transport struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper. The span ends with the body of the response.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, s := trace.SpanFromContext(r.Context()).TracerProvider().Tracer(Scope).
		Start(r.Context(), "HTTP "+r.Method, trace.WithSpanKind(trace.SpanKindClient))
	r = r.Clone(ctx)
	Replace(ctx, r.Header)
	if s.IsRecording() {
		s.SetAttributes(sent(r)...)
	}
	response, err := t.to.RoundTrip(r)
	if err != nil {
		s.SetAttributes(attribute.String("error.type", typeOf(err)))
		s.SetStatus(codes.Error, err.Error())
		s.End()
		return response, err
	}
	s.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if response.StatusCode >= http.StatusBadRequest {
		s.SetAttributes(attribute.String("error.type", strconv.Itoa(response.StatusCode)))
		s.SetStatus(codes.Error, "")
	}
	if _, upgraded := response.Body.(io.Writer); upgraded {
		s.End()
	} else {
		response.Body = &body{response.Body, s}
	}
	return response, nil
}

// sent returns the attributes of a request of the server, as OpenTelemetry names them.
func sent(r *http.Request) []attribute.KeyValue {
	host, port := r.URL.Hostname(), r.URL.Port()
	full := *r.URL
	full.User = nil
	with := append(common(r), attribute.String("url.full", full.String()), attribute.String("server.address", host))
	if n, err := strconv.Atoi(port); err == nil && port != "443" {
		with = append(with, attribute.Int("server.port", n))
	}
	return with
}

// typeOf returns the type of an error without the wrappers around it.
func typeOf(err error) string {
	var failed net.Error
	if errors.As(err, &failed) {
		err = failed
	}
	return reflect.TypeOf(err).String()
}

// A body ends a span.
type body struct {
	io.ReadCloser
	span trace.Span
}

func (b *body) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	if err != nil {
		b.span.End()
	}
	return n, err
}

func (b *body) Close() error {
	b.span.End()
	return b.ReadCloser.Close()
}
