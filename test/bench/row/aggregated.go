package row

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// aggregated measures the cost of proxying to an aggregated API server.
func aggregated(s Size) *Scenario {
	return &Scenario{
		Name: "aggregated", Title: "Another API server behind", Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		About: "The API server behind answers from the process that makes the load, over HTTP/2, with the same 1.7 kB each time.",
		Rows: []Row{
			{ID: "aggregated-1", Title: "proxied get, 1 client", Unit: "/s", Higher: true},
			{ID: "aggregated-32", Title: "proxied get, 32 clients", Unit: "/s", Higher: true},
			{ID: "aggregated-watch", Title: "proxied watch events, 100 watchers", Unit: " events/s", Higher: true},
		},
		run: runAggregated,
	}
}

func runAggregated(ctx context.Context, r *Run) error {
	there := newBehind()
	defer there.Close()
	_, port, err := net.SplitHostPort(there.Listener.Addr().String())
	if err != nil {
		return err
	}
	for _, p := range payload.Behind(port) {
		if err := r.configure(ctx, p); err != nil {
			return err
		}
	}
	gets := func(clients, count int) load.Plan {
		return load.Plan{Clients: clients, Warmup: warmup, Count: count, Make: func(_ int, q *load.Request) {
			*q = get(payload.BehindPath+"/namespaces/default/widgets/a", len(there.object))
		}}
	}
	if err := r.reaches(ctx); err != nil {
		return err
	}
	if _, err := r.rateAs(ctx, "aggregated-1", r.server.Target, gets(1, r.size.Many/4)); err != nil {
		return err
	}
	if _, err := r.rateAs(ctx, "aggregated-32", r.server.Target, gets(clients, r.size.Many)); err != nil {
		return err
	}
	const watchers = 100
	audience, err := load.Watch(ctx, r.server.Target, payload.BehindPath+"/widgets?watch=1", watchers)
	if err != nil {
		return err
	}
	defer audience.Close()
	events := r.size.Many / 10
	began := time.Now()
	for range events {
		there.send()
	}
	if err := audience.Wait(ctx, int64(events*watchers), 2*time.Minute); err != nil {
		return err
	}
	r.put("aggregated-watch", float64(events*watchers)/time.Since(began).Seconds(), "")
	return nil
}

// reaches waits until the APIService is available.
func (r *Run) reaches(ctx context.Context) error {
	c, err := load.Dial(ctx, r.server.Target)
	if err != nil {
		return err
	}
	defer c.Close()
	q := get(payload.BehindPath+"/namespaces/default/widgets/a", 0)
	for began := time.Now(); ; {
		got, err := c.Do(&q)
		switch {
		case err != nil:
			return err
		case got.Status == http.StatusOK:
			return nil
		case time.Since(began) > time.Minute:
			return fmt.Errorf("the server behind is not reached: %d %s", got.Status, got.Start)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A behind is an API server that has one object, and events on demand.
type behind struct {
	*httptest.Server
	object, event []byte

	mu      sync.Mutex
	watches map[chan struct{}]bool
}

func newBehind() *behind {
	b := &behind{object: payload.Kind{Group: payload.BehindGroup}.Widget("default", 1), watches: map[chan struct{}]bool{}}
	b.event = fmt.Appendf(nil, "{\"type\":\"MODIFIED\",\"object\":%s}\n", bytes.ReplaceAll(b.object, []byte("\n"), nil))
	b.Server = httptest.NewUnstartedServer(b)
	b.EnableHTTP2 = true
	b.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 250} // close to the value of a Kubernetes API server
	b.StartTLS()
	return b
}

func (b *behind) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") != "":
		b.watch(w, r)
	case strings.HasSuffix(r.URL.Path, "/widgets/a"):
		_, _ = w.Write(b.object)
	default:
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[]}`, payload.BehindGroup+"/v1")
	}
}

// watch writes each event.
func (b *behind) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan struct{}, 1<<16)
	b.mu.Lock()
	b.watches[events] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watches, events)
	}()
	flush := http.NewResponseController(w).Flush
	for err := flush(); err == nil; err = flush() {
		select {
		case <-events:
			_, _ = w.Write(b.event)
		case <-r.Context().Done():
			return
		}
	}
}

// send sends an event to all watches.
func (b *behind) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watches {
		w <- struct{}{}
	}
}
