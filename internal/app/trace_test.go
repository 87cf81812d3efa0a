package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// traced are the headers of a client that traces its requests.
var traced = http.Header{
	"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"vendor=1"}, "Baggage": {"team=a"},
}

// trace sends a request with the headers traced.
func trace(t *testing.T, c *http.Client, method, url, body string, want int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = traced.Clone()
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != want {
		t.Fatalf("%s %s: %d, want %d", method, url, answer.StatusCode, want)
	}
}

// expectTrace checks that a request that the server sent continues the trace.
func expectTrace(t *testing.T, got http.Header) {
	t.Helper()
	for name := range traced {
		if got.Get(name) != traced.Get(name) {
			t.Errorf("%s is %q, want %q", name, got.Get(name), traced.Get(name))
		}
	}
}

// The trace of a client continues in the webhooks that its request calls, as with kube-apiserver
// without traces of its own. A request without a trace begins none.
func TestTraceContinuesInWebhooks(t *testing.T) {
	h := startAdmitting(t, Options{})
	h.must("POST", mutatingWebhooks, h.configuration("Mutating", h.hook.URL, h.ca(), ""), 201)
	trace(t, h.client, "POST", h.app.URL()+inConfigMaps, configMap("a"), 201)
	expectTrace(t, h.last.Load().Header)
	h.must("POST", inConfigMaps, configMap("b"), 201)
	for name := range traced {
		if got := h.last.Load().Header.Values(name); len(got) > 0 {
			t.Errorf("without a trace: %s is %q", name, got)
		}
	}
}

// It also continues in aggregated API servers.
func TestTraceContinuesInAggregatedServers(t *testing.T) {
	f := behind(t, Options{})
	got := make(chan http.Header, 1)
	f.answer(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	trace(t, f.client, "GET", f.app.URL()+flowers+"/namespaces/default/roses/a", "", 200)
	expectTrace(t, <-got)
}

// With a tracing configuration, the span of the server that makes the call is the parent.
func TestTraceContinuesWithOwnSpans(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte("endpoint: unix:///nowhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "10") // milliseconds: no collector listens
	h := startAdmitting(t, Options{TracingFile: file})
	h.must("POST", mutatingWebhooks, h.configuration("Mutating", h.hook.URL, h.ca(), ""), 201)
	trace(t, h.client, "POST", h.app.URL()+inConfigMaps, configMap("a"), 201)
	expectChild(t, h.last.Load().Header)

	f := behind(t, Options{TracingFile: file})
	got := make(chan http.Header, 1)
	f.answer(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	trace(t, f.client, "GET", f.app.URL()+flowers+"/namespaces/default/roses/a", "", 200)
	expectChild(t, <-got)
}

// expectChild checks that a request that the server sent continues the trace within a span of the server.
func expectChild(t *testing.T, got http.Header) {
	t.Helper()
	parent := strings.Split(got.Get("Traceparent"), "-")
	client := strings.Split(traced.Get("Traceparent"), "-")
	if len(parent) != len(client) || parent[1] != client[1] || parent[2] == client[2] || parent[3] != client[3] {
		t.Errorf("the parent is %q, want another span of the trace %s", got.Get("Traceparent"), client[1])
	}
	for _, name := range []string{"Tracestate", "Baggage"} {
		if got.Get(name) != traced.Get(name) {
			t.Errorf("%s is %q, want %q", name, got.Get(name), traced.Get(name))
		}
	}
}
