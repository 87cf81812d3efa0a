package otlp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// An exporter that blocks until release is closed, and then fails.
type exporter struct {
	sdk.SpanExporter
	release chan struct{}

	mu    sync.Mutex
	spans int
}

func (e *exporter) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	<-e.release
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spans += len(spans)
	return errors.New("unavailable")
}

func (e *exporter) Shutdown(context.Context) error { return nil }

// While the collector hangs, spans wait up to a bound, and others are dropped. No span waits for an export.
func TestCollectorHangs(t *testing.T) {
	rate := int32(perMillion)
	c := &Configuration{}
	c.SamplingRatePerMillion = &rate
	e := &exporter{release: make(chan struct{})}
	p := newProvider(c, Options{Log: slog.New(slog.DiscardHandler)}, e)
	tracer := p.Tracers().Tracer("test")
	const started = 100_000
	for range started {
		_, s := tracer.Start(t.Context(), "one")
		s.End()
	}
	close(e.release)
	p.Close(t.Context())
	// The queue, a batch that waits for it, and one that is being sent.
	if most := 2048 + 2*512; e.spans == 0 || e.spans > most {
		t.Errorf("%d of %d spans were exported, want 1 to %d", e.spans, started, most)
	}
}

// The log has a line a minute about lost spans, and their number.
func TestLostSpansAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		release := make(chan struct{})
		close(release)
		r := &reported{SpanExporter: &exporter{release: release}, log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 3 {
			if err := r.ExportSpans(t.Context(), make([]sdk.ReadOnlySpan, 5)); err != nil {
				t.Error("the SDK would report the error to a handler of the process:", err)
			}
		}
		time.Sleep(pause + time.Second)
		r.ExportSpans(t.Context(), make([]sdk.ReadOnlySpan, 5))
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "spans=5 error=unavailable") || !strings.Contains(got, "spans=15 error=unavailable") {
			t.Error(got)
		}
	})
}

// Without a rate, only traces of clients continue.
func TestNoRate(t *testing.T) {
	tracer := newProvider(&Configuration{}, Options{Log: slog.New(slog.DiscardHandler)}, &exporter{}).Tracers().Tracer("test")
	if _, s := tracer.Start(t.Context(), "own"); s.IsRecording() {
		t.Error("a span without a parent is sampled")
	}
	for flags, want := range map[trace.TraceFlags]bool{0: false, trace.FlagsSampled: true} {
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: flags, Remote: true})
		if _, s := tracer.Start(trace.ContextWithRemoteSpanContext(t.Context(), parent), "child"); s.IsRecording() != want {
			t.Errorf("a child of flags %v is sampled: %v", flags, !want)
		}
	}
}
