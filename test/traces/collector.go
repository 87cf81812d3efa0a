package traces

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// A collector has the exported spans.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	address string

	arrived chan struct{} // after an export

	mu       sync.Mutex
	spans    []*tracev1.Span
	resource map[string]string // attributes of the exporting server
}

// startCollector starts a collector on a free port.
func startCollector(t *testing.T) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, l)
}

// collect collects spans from a listener until the end of the test.
func collect(t *testing.T, l net.Listener) *collector {
	c := &collector{address: l.Addr().String(), arrived: make(chan struct{}, 1)}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return c
}

// Export implements the service of OTLP.
func (c *collector) Export(_ context.Context, r *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		c.resource = map[string]string{}
		for _, a := range of.Resource.Attributes {
			c.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	select {
	case c.arrived <- struct{}{}:
	default:
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// received returns the spans so far for which keep is true.
func (c *collector) received(keep func(*tracev1.Span) bool) (out []*tracev1.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if keep(s) {
			out = append(out, s)
		}
	}
	return out
}

// patience is longer than an export takes, with a new connection to the collector.
const patience = time.Minute

// await waits until got returns true. It calls got after each export, and each second.
func (c *collector) await(t *testing.T, what string, got func() bool) {
	t.Helper()
	end := time.After(patience)
	for !got() {
		select {
		case <-c.arrived:
		case <-time.After(time.Second):
		case <-end:
			t.Fatalf("no %s after %v", what, patience)
		}
	}
}

// ofRequest waits for the span of a request with an audit id, and returns it with the other spans of its trace.
func (c *collector) ofRequest(t *testing.T, auditID string) (own *tracev1.Span, all []*tracev1.Span) {
	t.Helper()
	c.await(t, "span of "+auditID, func() bool {
		found := c.received(func(s *tracev1.Span) bool {
			return s.Kind == tracev1.Span_SPAN_KIND_SERVER && attribute(s, "audit-id").GetStringValue() == auditID
		})
		if len(found) == 0 {
			return false
		}
		own = found[0]
		all = c.received(func(s *tracev1.Span) bool { return string(s.TraceId) == string(own.TraceId) })
		return len(own.ParentSpanId) == 0 || remote(own) || parentOf(own, all) != nil
	})
	return own, all
}

// remote reports whether the parent of a span is a client's.
func remote(s *tracev1.Span) bool {
	return s.Flags&uint32(tracev1.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK) != 0
}

func parentOf(s *tracev1.Span, all []*tracev1.Span) *tracev1.Span {
	for _, other := range all {
		if string(other.SpanId) == string(s.ParentSpanId) {
			return other
		}
	}
	return nil
}

// attribute returns the value of an attribute, nil for none.
func attribute(s *tracev1.Span, key string) *commonv1.AnyValue {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return nil
}

func id(bytes []byte) string { return hex.EncodeToString(bytes) }
