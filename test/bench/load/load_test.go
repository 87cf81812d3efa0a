package load

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server that speaks HTTP/2 over TLS.
func serve(t *testing.T, h http.HandlerFunc) Target {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return Target{Address: s.Listener.Addr().String(), TLS: &tls.Config{RootCAs: roots}, Token: "secret"}
}

// Each percentile is a measured value, by the nearest-rank method.
func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		of   []time.Duration
		p    float64
		want time.Duration
	}{
		{nil, 50, 0},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 99.5, 100},
		{hundred, 100, 100},
		{hundred, 0, 1},
		{[]time.Duration{7}, 1, 7},
		{[]time.Duration{7}, 99, 7},
		{[]time.Duration{1, 2, 3}, 50, 2},
		{[]time.Duration{1, 2, 3, 4}, 50, 2},
		{[]time.Duration{1, 2, 3, 4}, 51, 3},
		{[]time.Duration{1, 1, 1, 1, 1, 1, 1, 1, 1, 9}, 90, 1},
		{[]time.Duration{1, 1, 1, 1, 1, 1, 1, 1, 1, 9}, 91, 9},
	} {
		if got := percentile(c.of, c.p); got != c.want {
			t.Errorf("percentile %v of %d values: %d, not %d", c.p, len(c.of), got, c.want)
		}
	}
}

// A rate counts successful requests only.
func TestRate(t *testing.T) {
	r := Result{Done: 50, Errors: 50, Elapsed: 2 * time.Second}
	if r.Rate() != 25 {
		t.Errorf("50 answers in 2 s are %v in a second", r.Rate())
	}
}

// Rejections, short responses, truncated responses and broken connections count as errors, and have no
// latency.
func TestErrorsAreCounted(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refused":
			http.Error(w, "too many", http.StatusTooManyRequests)
		case "/short":
			io.WriteString(w, "[]")
		case "/broken":
			panic(http.ErrAbortHandler)
		case "/half":
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		default:
			io.WriteString(w, "as it should be")
		}
	})
	for _, path := range []string{"/refused", "/short", "/broken", "/half"} {
		t.Run(path, func(t *testing.T) {
			got, err := Plan{Clients: 3, Count: 40, Make: func(n int, r *Request) {
				*r = Request{Method: "GET", Path: "/fine", Least: 10}
				if n%4 == 3 {
					r.Path = path
				}
			}}.Run(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			if got.Done != 30 || got.Errors != 10 || len(got.Latencies) != 30 || got.FirstError == "" {
				t.Errorf("%d answered, %d latencies, %d errors, the first %q", got.Done, len(got.Latencies), got.Errors, got.FirstError)
			}
		})
	}
}

// An expected rejection counts as success, any other as an error.
func TestRefusable(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusConflict) })
	for refusable, errors := range map[int]int{0: 1, 409: 0, 422: 1} {
		got, err := Plan{Clients: 1, Count: 1, Make: func(_ int, r *Request) {
			*r = Request{Method: "GET", Path: "/", Refusable: refusable}
		}}.Run(t.Context(), target)
		if err != nil || got.Errors != errors {
			t.Errorf("409 where %d will do: %d errors, %v", refusable, got.Errors, err)
		}
	}
}

// Warm-up requests are sent, and not counted.
func TestWarmupIsNotCounted(t *testing.T) {
	var asked atomic.Int64
	target := serve(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1) })
	got, err := Plan{Clients: 4, Warmup: 10, Count: 20, Make: func(_ int, r *Request) { *r = Request{Method: "GET", Path: "/"} }}.Run(t.Context(), target)
	if err != nil || got.Done != 20 || asked.Load() != 30 {
		t.Errorf("%d counted of %d, %v", got.Done, asked.Load(), err)
	}
}

// Two servers receive the same requests, however fast each responds: every method, path, header and
// body.
func TestBothGetTheSame(t *testing.T) {
	record := func(slow bool) []string {
		var mu sync.Mutex
		var all []string
		var target Target
		target = serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Header.Del("Date")
			mu.Lock()
			defer mu.Unlock()
			if slow && len(all)%7 == 0 {
				w.Header().Set("Padding", strings.Repeat("x", 5000))
			}
			all = append(all, fmt.Sprint(r.Method, r.URL, r.Proto, r.Header, r.ContentLength, string(body), r.Host == target.Address))
		})
		got, err := Plan{Clients: 8, Warmup: 10, Count: 200, Make: func(n int, r *Request) {
			*r = Request{Method: "POST", Path: fmt.Sprint("/things/", n), ContentType: "application/json", Body: fmt.Appendf(nil, `{"n":%d}`, n)}
		}}.Run(t.Context(), target)
		if err != nil || got.Errors > 0 {
			t.Fatalf("%v, %d errors: %s", err, got.Errors, got.FirstError)
		}
		slices.Sort(all)
		return all
	}
	one, two := record(false), record(true)
	if len(one) != 210 || !slices.Equal(one, two) {
		t.Errorf("%d and %d requests, which differ", len(one), len(two))
	}
	if !strings.Contains(one[0], "Bearer secret") || !strings.Contains(one[0], "HTTP/2.0") || !strings.HasSuffix(one[0], "true") {
		t.Errorf("sent %s", one[0])
	}
}

// Bodies larger than the flow-control window arrive whole, in both directions.
func TestLargeBodies(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for range 10 {
			w.Write(body)
		}
	})
	body := bytes.Repeat([]byte("0123456789abcdef"), 3<<16)
	got, err := Plan{Clients: 2, Count: 6, Make: func(_ int, r *Request) {
		*r = Request{Method: "POST", Path: "/", ContentType: "text/plain", Body: body, Least: 10 * len(body)}
	}}.Run(t.Context(), target)
	if err != nil || got.Errors > 0 || got.Bytes != int64(60*len(body)) {
		t.Errorf("%d bytes, %v, %s", got.Bytes, err, got.FirstError)
	}
}

// Events are lines, independent of the frame boundaries.
func TestAudienceCountsLines(t *testing.T) {
	tell := make(chan struct{})
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-tell
		for i := range 10 {
			fmt.Fprintf(w, `{"n":`)
			w.(http.Flusher).Flush()
			fmt.Fprintf(w, "%d}\n", i)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	audience, err := Watch(t.Context(), target, "/", 70)
	if err != nil {
		t.Fatal(err)
	}
	if audience.Seen() != 0 {
		t.Error("events before there were any")
	}
	close(tell)
	if err := audience.Wait(t.Context(), 700, time.Minute); err != nil {
		t.Error(err)
	}
	if least, most := audience.Close(); least != 10 || most != 10 {
		t.Errorf("between %d and %d events were seen, not 10", least, most)
	}
}

// A watch that ends before its last event is an error.
func TestAudienceThatIsCutShort(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		io.WriteString(w, "{}\n")
	})
	audience, err := Watch(t.Context(), target, "/", 3)
	if err != nil {
		t.Fatal(err)
	}
	defer audience.Close()
	if err := audience.Wait(t.Context(), 100, time.Minute); err == nil {
		t.Error("100 events were seen of 3")
	}
}

// A rejected watch is an error.
func TestAudienceThatIsRefused(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	if _, err := Watch(t.Context(), target, "/", 3); err == nil {
		t.Error("a rejected watch is no error")
	}
}

// A server that disappears causes errors, not a crash, and the plan ends.
func TestServerThatGoesAway(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	s.EnableHTTP2 = true
	s.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	target := Target{Address: s.Listener.Addr().String(), TLS: &tls.Config{RootCAs: roots}}
	var gone sync.Once
	got, err := Plan{Clients: 4, Count: 1000, Make: func(n int, r *Request) {
		*r = Request{Method: "GET", Path: "/"}
		if n == 500 {
			gone.Do(func() { s.Listener.Close(); s.CloseClientConnections() })
		}
	}}.Run(t.Context(), target)
	s.Close()
	if err != nil || got.Errors == 0 || got.Done == 0 {
		t.Errorf("%v: %d answers and %d errors", err, got.Done, got.Errors)
	}
	if _, err := (Plan{Clients: 1}).Run(t.Context(), target); err == nil {
		t.Error("a plan without an end was begun")
	}
}

// Clients are spread evenly over several targets, however fast each is.
func TestSpread(t *testing.T) {
	var counts [3]atomic.Int64
	var targets []Target
	for i := range counts {
		target := serve(t, func(w http.ResponseWriter, r *http.Request) { counts[i].Add(1) })
		targets = append(targets, target)
	}
	var mu sync.Mutex
	met := 0
	all := make(chan struct{})
	got, err := Plan{Clients: 6, Count: 6, Make: func(_ int, r *Request) {
		*r = Request{Method: "GET", Path: "/"}
		// Every client waits for the others, so that each makes one request.
		mu.Lock()
		if met++; met == 6 {
			close(all)
		}
		mu.Unlock()
		<-all
	}}.Run(t.Context(), targets...)
	if err != nil || got.Done != 6 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range counts {
		if n := counts[i].Load(); n != 2 {
			t.Errorf("target %d had %d requests, not 2", i, n)
		}
	}
}
