package footprint

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
)

var (
	watchers = flag.Int("watchers", 1000, "number of watchers; one in a hundred never reads; a third with -short")
	writes   = flag.Int("writes", 20, "number of writes in each phase")
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// An audience is a set of watchers, with their common count of events.
type audience struct {
	*testing.T
	server *process.Server
	ctx    context.Context
	from   string // resourceVersion at which they begin
	seen   atomic.Int64
	target atomic.Int64
	all    chan struct{} // gets a value when the target is reached
	group  sync.WaitGroup
	mu     sync.Mutex
	leave  []func()
}

// A writer changes watched objects. The nth write has the number n, by which a watcher detects a
// missed event.
type writer struct {
	*testing.T
	api process.API
	n   int
}

func (w *writer) must(method, path string, in, out any) {
	w.Helper()
	if err := w.api.Do(w.Context(), method, path, in, out); err != nil {
		w.Fatal(err)
	}
}

// inside returns the server's time for writes, and their number. A client in the process of the
// watchers also waits for the watchers.
func (w *writer) inside() (seconds float64, count float64) {
	w.Helper()
	for line := range strings.Lines(text(w.T, w.api, "/metrics")) {
		if !strings.Contains(line, `resource="configmaps"`) || !strings.Contains(line, `verb="PATCH"`) {
			continue
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		switch {
		case err != nil:
			w.Fatal(err)
		case strings.HasPrefix(line, "apiserver_request_duration_seconds_sum"):
			seconds = value
		case strings.HasPrefix(line, "apiserver_request_duration_seconds_count"):
			count = value
		}
	}
	return seconds, count
}

// small is a write that all watchers see.
func (w *writer) small() time.Duration {
	w.Helper()
	w.n++
	began := time.Now()
	w.must(http.MethodPatch, configMaps+"/small", data(w.n, 1000), nil)
	return time.Since(began)
}

// large is a write that exceeds the buffers between the server and a watcher. Only watchers of all
// objects see it.
func (w *writer) large() {
	w.Helper()
	for i := range 40 {
		w.must(http.MethodPatch, configMaps+"/large", data(i, 500_000), nil)
	}
}

// others writes enough to evict everything from the caches of watch events.
func (w *writer) others() {
	w.Helper()
	var all sync.WaitGroup
	for part := range 16 {
		all.Go(func() {
			path := fmt.Sprintf("%s/other%d", configMaps, part)
			for i := range 40 {
				if err := w.api.Do(w.Context(), http.MethodPatch, path, data(i, 1000), nil); err != nil {
					w.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// "A slow or dead watcher never delays a writer or another watcher and does not hold memory after it
// is gone." Every watcher of a write costs time, so the test compares writes with reading watchers
// only, and writes with additional watchers that never read.
func TestWatchers(t *testing.T) {
	server, api := start(t, build(t), t.TempDir())
	defer stop(t, server)
	w := &writer{T: t, api: api}
	w.must(http.MethodPost, configMaps, named("small", map[string]any{"small": "yes"}), nil)
	w.must(http.MethodPost, configMaps, named("large", nil), nil)
	for i := range 16 {
		w.must(http.MethodPost, configMaps, named(fmt.Sprint("other", i), nil), nil)
	}
	w.large()
	w.others()
	before := measure(t, server, api)
	alone := w.latencies()
	t.Logf("no watchers:             %s; writing takes %s", before, alone)

	all := *watchers
	if testing.Short() {
		all /= 3
	}
	stuck, reading := all/100, all-all/100
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var now struct {
		Metadata struct{ ResourceVersion string }
	}
	w.must(http.MethodGet, configMaps+"/small", nil, &now)
	a := &audience{T: t, server: server, ctx: ctx, from: now.Metadata.ResourceVersion, all: make(chan struct{}, 1)}
	defer a.end()
	defer cancel()
	a.read(reading, w.n)
	watched, took := a.follow(reading, w)
	during := measure(t, server, api)
	t.Logf("%6d read:             %s; writing takes %s; %.0f events/s", reading, during, watched, perSecond(reading, took))

	a.ignore(stuck)
	w.large()
	disturbed, took := a.follow(reading, w)
	with := measure(t, server, api)
	t.Logf("%6d more never read:  %s; writing takes %s; %.0f events/s", stuck, with, disturbed, perSecond(reading, took))
	t.Logf("writing takes %.2f times as long with those that never read, %.1f times as long as alone", disturbed.ratio(watched), disturbed.ratio(alone))
	if most := during.heap + during.heap/2 + int64(stuck)*stuckHeap + 32<<20; with.heap > most {
		t.Errorf("with %d that never read %s of heap are in use, %s without", stuck, megabytes(with.heap), megabytes(during.heap))
	}

	cancel()
	a.end()
	w.others()
	after := a.quiet(api, before)
	t.Logf("all are gone:            %s", after)
	// Values that the watchers made hot stay for a while: those of the watchers that never read would be more.
	if most := before.heap + before.heap/4 + 24<<20; after.heap > most {
		t.Errorf("of watchers that are gone %s of heap are left, there were %s before", megabytes(after.heap), megabytes(before.heap))
	}
}

// stuckHeap is the limit for the memory of one watcher that does not read: its current event, its next
// one, and its connection.
const stuckHeap = 2 << 20

func named(name string, labels map[string]any) any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "labels": labels}}
}

// data returns a merge patch of the given size.
func data(n, size int) any {
	return map[string]any{"data": map[string]any{"n": fmt.Sprint(n), "padding": strings.Repeat("x", size)}}
}

// A spread is a distribution of durations.
type spread struct {
	median, worst time.Duration // worst: the 99th percentile
	inside        time.Duration // the mean in the server's metrics
}

func (s spread) String() string {
	const exact = 10 * time.Microsecond
	return fmt.Sprintf("%v (p50), %v (p99), in the server %v", s.median.Round(exact), s.worst.Round(exact), s.inside.Round(exact))
}

func (s spread) ratio(to spread) float64 { return float64(s.median) / float64(to.median) }

// latencies measures sequential writes.
func (w *writer) latencies() spread {
	w.Helper()
	seconds, count := w.inside()
	var all []time.Duration
	for range *writes {
		all = append(all, w.small())
	}
	slices.Sort(all)
	until, n := w.inside()
	inside := time.Duration((until - seconds) / (n - count) * float64(time.Second))
	return spread{all[len(all)/2], all[len(all)*99/100], inside}
}

func perSecond(readers int, took time.Duration) float64 {
	return float64(readers**writes) / took.Seconds()
}

// follow measures writes, and the time until all watchers have their events.
func (a *audience) follow(readers int, w *writer) (spread, time.Duration) {
	a.Helper()
	a.seen.Store(0)
	a.target.Store(int64(readers * *writes))
	began := time.Now()
	s := w.latencies()
	select {
	case <-a.all:
	case <-time.After(waitTimeout):
		a.Fatalf("%d events were seen, not %d", a.seen.Load(), a.target.Load())
	}
	return s, time.Since(began)
}

// waitTimeout limits the wait for an event.
const waitTimeout = 2 * time.Minute

// streams is the number of watches on a connection.
const streams = 100

// read adds watchers of small writes that begin after the write with the number last.
func (a *audience) read(n, last int) {
	a.Helper()
	var opening sync.WaitGroup
	connections := make(chan int)
	for range 4 {
		opening.Go(func() {
			for streams := range connections {
				a.connect(streams, last)
			}
		})
	}
	for ; n > 0; n -= streams {
		connections <- min(n, streams)
	}
	close(connections)
	opening.Wait()
}

// connect opens watches on one connection and reads their events.
func (a *audience) connect(streams, last int) {
	client, err := process.Client(a.server.Kubeconfig)
	if err != nil {
		a.Error(err)
		return
	}
	for range streams {
		response, err := a.open(client, "small=yes")
		if err != nil {
			a.Error(err)
			return
		}
		a.group.Go(func() { a.watch(response, last) })
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leave = append(a.leave, client.CloseIdleConnections)
}

// watch reads events until the watch ends. Their numbers are consecutive.
func (a *audience) watch(response *http.Response, last int) {
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 2<<10)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case a.ctx.Err() != nil:
			return
		case err != nil:
			a.Errorf("a watch ended after write %d: %v", last, err)
			return
		case !bytes.Contains(line, fmt.Appendf(nil, `"n":"%d"`, last+1)):
			a.Errorf("write %d was followed by %.300s", last, line)
			return
		}
		last++
		if a.seen.Add(1) == a.target.Load() {
			a.all <- struct{}{}
		}
	}
}

func (a *audience) open(client *http.Client, labels string) (*http.Response, error) {
	query := url.Values{"watch": {"true"}, "resourceVersion": {a.from}, "labelSelector": {labels}}
	r, err := http.NewRequestWithContext(a.ctx, http.MethodGet, a.server.URL+configMaps+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(r)
	if err == nil && response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(response.Body)
		err = fmt.Errorf("%s %s", response.Status, said)
	}
	return response, err
}

// ignore adds watchers of all objects that never read: some have a stream among others, most a
// connection of their own.
func (a *audience) ignore(n int) {
	a.Helper()
	client, err := process.Client(a.server.Kubeconfig)
	if err != nil {
		a.Fatal(err)
	}
	a.leave = append(a.leave, client.CloseIdleConnections)
	for i := range n {
		if i%5 == 0 {
			response, err := a.open(client, "")
			if err != nil {
				a.Fatal(err)
			}
			a.leave = append(a.leave, func() { response.Body.Close() })
			continue
		}
		config := client.Transport.(*http.Transport).TLSClientConfig.Clone()
		config.ServerName, _, _ = net.SplitHostPort(a.server.Address())
		config.NextProtos = []string{"http/1.1"}
		plain, err := net.Dial("tcp", a.server.Address())
		if err != nil {
			a.Fatal(err)
		}
		if err := plain.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			a.Fatal(err)
		}
		c := tls.Client(plain, config)
		a.leave = append(a.leave, func() { plain.Close() })
		if _, err := fmt.Fprintf(c, "GET %s?watch=true&resourceVersion=%s HTTP/1.1\r\nHost: x\r\n\r\n", configMaps, a.from); err != nil {
			a.Fatal(err)
		}
	}
}

// end waits for the end of all watchers, whose context has ended.
func (a *audience) end() {
	a.group.Wait()
	for _, leave := range slices.Backward(a.leave) {
		leave()
	}
	a.leave = nil
}

// quiet waits until the server has closed all watches.
func (a *audience) quiet(api process.API, before footprint) footprint {
	a.Helper()
	deadline := time.Now().Add(waitTimeout)
	for {
		now := measure(a.T, a.server, api)
		if now.goroutines <= before.goroutines+10 {
			return measure(a.T, a.server, api) // the second collection empties the pools
		}
		if time.Now().After(deadline) {
			a.Errorf("%d goroutines are left, there were %d before", now.goroutines, before.goroutines)
			return now
		}
	}
}
