package app

import (
	"net/http"
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
