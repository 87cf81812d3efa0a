package span_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/span"
)

// Without a trace, spans cost no allocation.
func TestNoTraceCostsNothing(t *testing.T) {
	ctx := request.With(t.Context(), &request.Request{})
	usual := http.DefaultTransport
	if n := testing.AllocsPerRun(100, func() {
		within, s := span.Start(ctx, "work")
		if within != ctx || s.IsRecording() || span.Transport(ctx, usual) != usual {
			t.Error("a span without a trace")
		}
		s.AddEvent("done")
		span.End(s, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkStartWithoutTrace(b *testing.B) {
	ctx := request.With(b.Context(), &request.Request{})
	for b.Loop() {
		_, s := span.Start(ctx, "work")
		span.End(s, nil)
	}
}

func BenchmarkStart(b *testing.B) {
	ctx, _ := sdk.NewTracerProvider().Tracer("test").Start(b.Context(), "top")
	for b.Loop() {
		_, s := span.Start(ctx, "work")
		span.End(s, nil)
	}
}

// recording returns a context with a span, and the spans that have ended.
func recording(t *testing.T) (context.Context, *tracetest.SpanRecorder) {
	ended := tracetest.NewSpanRecorder()
	ctx, _ := sdk.NewTracerProvider(sdk.WithSpanProcessor(ended)).Tracer("test").Start(t.Context(), "top")
	return ctx, ended
}

func TestStart(t *testing.T) {
	ctx, ended := recording(t)
	within, s := span.Start(ctx, "work")
	span.End(s, errors.New("broken"))
	if trace.SpanFromContext(within) != s {
		t.Error("the context is without the span")
	}
	got := ended.Ended()
	if len(got) != 1 || got[0].Name() != "work" || got[0].Parent().SpanID() != trace.SpanContextFromContext(ctx).SpanID() {
		t.Fatal(got)
	}
	if events := got[0].Events(); len(events) != 1 || events[0].Attributes[0] != attribute.String("exception.message", "broken") {
		t.Error(events)
	}
}

// Requests of the server have the trace of the span that causes them, else that of the client.
func TestContinue(t *testing.T) {
	const parent, state = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1"
	client := request.With(t.Context(), &request.Request{Sent: http.Header{"Traceparent": {parent}, "Tracestate": {state}, "Baggage": {"a=b"}}})
	got := http.Header{}
	request.ContinueTrace(client, got)
	if got.Get("Traceparent") != parent || got.Get("Tracestate") != state || got.Get("Baggage") != "a=b" {
		t.Error(got)
	}
	traced, _ := recording(t)
	of := trace.SpanContextFromContext(traced)
	got = http.Header{}
	request.ContinueTrace(trace.ContextWithSpan(client, trace.SpanFromContext(traced)), got)
	if want := "00-" + of.TraceID().String() + "-" + of.SpanID().String() + "-01"; got.Get("Traceparent") != want || got.Get("Tracestate") != "" || got.Get("Baggage") != "a=b" {
		t.Errorf("%v, want the parent %s", got, want)
	}
}

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// A request of the server has a span until its response is read.
func TestTransport(t *testing.T) {
	for _, test := range []struct {
		code int
		err  error
		want string
	}{
		{200, nil, "Unset"},
		{404, nil, "Error"},
		{0, errors.New("refused"), "Error"},
	} {
		ctx, ended := recording(t)
		var sent http.Header
		to := span.Transport(ctx, answering(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return &http.Response{StatusCode: test.code, Body: io.NopCloser(strings.NewReader("ok"))}, test.err
		}))
		r, _ := http.NewRequestWithContext(ctx, "POST", "https://user:secret@host:8443/path?a=b", nil)
		response, err := to.RoundTrip(r)
		if err != test.err || len(r.Header) > 0 {
			t.Fatal(err, r.Header)
		}
		if err == nil {
			if n := len(ended.Ended()); n != 0 {
				t.Error("the span ended before the response was read")
			}
			response.Body.Close()
		}
		got := ended.Ended()
		if len(got) != 1 || got[0].Name() != "HTTP POST" || got[0].SpanKind() != trace.SpanKindClient || got[0].Status().Code.String() != test.want {
			t.Fatalf("%d: %+v", test.code, got)
		}
		if !strings.Contains(sent.Get("Traceparent"), got[0].SpanContext().SpanID().String()) {
			t.Error(sent)
		}
		for _, a := range got[0].Attributes() {
			if strings.Contains(a.Value.String(), "secret") {
				t.Error("an attribute with a password:", a)
			}
		}
	}
}
