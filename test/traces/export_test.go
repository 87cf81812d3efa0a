package traces

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/anykind/anykind/test/process"
)

const namespace = "/api/v1/namespaces/default"

// served keeps the spans of requests with an audit id that begins with a name.
func served(name string) func(*tracev1.Span) bool {
	return func(s *tracev1.Span) bool {
		return s.Kind == tracev1.Span_SPAN_KIND_SERVER && strings.HasPrefix(attribute(s, "audit-id").GetStringValue(), name)
	}
}

// The client of an administrator decides about its traces. The configured rate decides about other requests.
func TestSampling(t *testing.T) {
	const requests = 400
	for _, test := range []struct {
		rate        string
		least, most int // of the requests without a trace, beyond chance
	}{
		{"", 0, 0},
		{"samplingRatePerMillion: 0", 0, 0},
		{"samplingRatePerMillion: 500000", requests/2 - 80, requests/2 + 80}, // eight standard deviations
		{"samplingRatePerMillion: 1000000", requests, requests},
	} {
		t.Run(test.rate, func(t *testing.T) {
			spans := startCollector(t)
			_, server := start(t, configured(t, "endpoint: "+spans.address, test.rate))
			for i := range requests {
				send(t, server, call{fmt.Sprint("plain-", i), "GET", namespace, "", nil})
			}
			for _, flags := range []string{"00", "01"} {
				send(t, server, call{"client-" + flags, "GET", namespace, "", map[string]string{"Traceparent": parent(t.Name(), flags)}})
			}
			own, _ := spans.ofRequest(t, "client-01") // the last of them, and spans arrive in their order
			if want := strings.Split(parent(t.Name(), "01"), "-")[1]; id(own.TraceId) != want {
				t.Errorf("the trace is %s, and that of the client %s", id(own.TraceId), want)
			}
			if n := len(spans.received(served("client-00"))); n != 0 {
				t.Error("a request that the client does not sample has a span")
			}
			if n := len(spans.received(served("plain-"))); n < test.least || n > test.most {
				t.Errorf("%d spans of %d requests, want %d to %d", n, requests, test.least, test.most)
			}
		})
	}
}

// A client that is no administrator cannot have the server sample its requests. Its request begins a trace.
func TestOtherClientsBeginTraces(t *testing.T) {
	for _, test := range []struct {
		rate  string
		spans int
	}{{"samplingRatePerMillion: 0", 0}, {"samplingRatePerMillion: 1000000", 1}} {
		t.Run(test.rate, func(t *testing.T) {
			spans := startCollector(t)
			s, admin := start(t, configured(t, "endpoint: "+spans.address, test.rate))
			client := parent(t.Name(), "01")
			anonymous := process.API{URL: s.URL, Client: anonymousClient(t, s)}
			send(t, anonymous, call{"anonymous", "GET", "/healthz", "", map[string]string{"Traceparent": client}})
			send(t, anonymous, call{"unauthorized", "GET", "/healthz", "", map[string]string{"Traceparent": client, "Authorization": "Bearer none"}})
			send(t, admin, call{"last", "GET", "/healthz", "", map[string]string{"Traceparent": parent("last", "01")}})
			spans.ofRequest(t, "last")
			if n := len(spans.received(served("unauthorized"))); n != 0 {
				t.Error("a request that is not authenticated has a span")
			}
			got := spans.received(served("anonymous"))
			if len(got) != test.spans {
				t.Fatalf("%d spans, want %d", len(got), test.spans)
			}
			for _, s := range got {
				trace := strings.Split(client, "-")[1]
				if id(s.TraceId) == trace || len(s.Links) != 1 || id(s.Links[0].TraceId) != trace {
					t.Errorf("trace %s with links %v, want a link to the trace %s", id(s.TraceId), s.Links, trace)
				}
			}
		})
	}
}

// anonymousClient returns a client that trusts the server and has no credentials.
func anonymousClient(t *testing.T, s *process.Server) *http.Client {
	t.Helper()
	c, err := process.Client(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.Transport.(*http.Transport).TLSClientConfig.Certificates = nil
	c.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = nil
	return c
}

// The exporting server has a name in traces, and an id that differs from those of servers on other hosts.
func TestResource(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "collector")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	spans := collect(t, l)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
	_, server := start(t, configured(t, "endpoint: unix://"+socket, "samplingRatePerMillion: 1000000"))
	send(t, server, call{"one", "GET", namespace, "", nil})
	spans.ofRequest(t, "one")
	spans.mu.Lock()
	defer spans.mu.Unlock()
	if got := spans.resource["service.name"]; got != "apiserver" {
		t.Errorf("service.name %q", got)
	}
	if got := spans.resource["service.instance.id"]; !strings.HasPrefix(got, "apiserver-") {
		t.Errorf("service.instance.id %q", got)
	}
	if got := spans.resource["deployment.environment"]; got != "test" {
		t.Errorf("an attribute of the environment: %q", got)
	}
}

// A server that stops exports the spans that wait.
func TestStopExports(t *testing.T) {
	spans := startCollector(t)
	flag := configured(t, "endpoint: "+spans.address, "samplingRatePerMillion: 1000000")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	s, server := start(t, flag)
	send(t, server, call{"late", "GET", namespace, "", nil})
	if n := len(spans.received(served("late"))); n != 0 {
		t.Fatalf("%d spans before the end", n)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.received(served("late"))); n != 1 {
		t.Errorf("%d spans at the end", n)
	}
}

// A collector that hangs or is down delays no request, and costs bounded memory. Spans arrive again once it
// answers, and the server stops in time without it.
func TestCollectorIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and does not answer
	if err != nil {
		t.Fatal(err)
	}
	flag := configured(t, "endpoint: "+l.Addr().String(), "samplingRatePerMillion: 1000000")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500") // milliseconds; the default is ten seconds
	s, server := start(t, flag)
	flood(t, server, 5000)
	before, slowest := resident(t, s.PID()), flood(t, server, 20000)
	after := resident(t, s.PID())
	t.Logf("slowest of 20000 requests: %v; resident %d kB, then %d kB", slowest, before, after)
	if slowest > 2*time.Second {
		t.Errorf("a request took %v", slowest)
	}
	// 20000 requests have 120000 spans of 2 kB.
	if most := before + 60_000; after > most {
		t.Errorf("resident %d kB after %d kB", after, before)
	}
	l.Close()
	again, err := net.Listen("tcp", l.Addr().String())
	if err != nil {
		t.Skip("the port is taken:", err)
	}
	spans := collect(t, again)
	spans.await(t, "export after the collector is back", func() bool {
		send(t, server, call{"back", "GET", namespace, "", nil})
		return len(spans.received(served("back"))) > 0
	})
}

// flood sends requests from 16 clients, and returns the longest time of one.
func flood(t *testing.T, to process.API, requests int) (slowest time.Duration) {
	const clients = 16
	var wg sync.WaitGroup
	took := make([]time.Duration, clients)
	for i := range clients {
		wg.Go(func() {
			for range requests / clients {
				begun := time.Now()
				if _, err := to.Read(t.Context(), namespace); err != nil {
					t.Error(err)
					return
				}
				took[i] = max(took[i], time.Since(begun))
			}
		})
	}
	wg.Wait()
	for _, d := range took {
		slowest = max(slowest, d)
	}
	return slowest
}

// resident returns the resident kilobytes of a process.
func resident(t *testing.T, pid int) (kilobytes int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc:", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(value, &kilobytes)
		}
	}
	return kilobytes
}

// A write has a span for its commit, with the key.
func TestCommit(t *testing.T) {
	spans := startCollector(t)
	_, server := start(t, configured(t, "endpoint: "+spans.address))
	send(t, server, call{"write", "POST", configMaps, object, map[string]string{"Traceparent": parent("write", "01")}})
	_, all := spans.ofRequest(t, "write")
	for _, s := range all {
		if s.Name == "Commit" {
			if key := attribute(s, "key").GetStringValue(); key != "/registry/configmaps/default/a" {
				t.Error(key)
			}
			return
		}
	}
	t.Errorf("no commit among %d spans", len(all))
}
