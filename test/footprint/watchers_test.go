package footprint

import (
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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
)

var (
	watchers = flag.Int("watchers", 1000, "how many watch; one in a hundred of them never reads")
	writes   = flag.Int("writes", 100, "how often is written in each phase")
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// An audience is those who watch, and what they have seen together.
type audience struct {
	*testing.T
	server *process.Server
	ctx    context.Context
	from   string // the resourceVersion they begin at
	seen   atomic.Int64
	target atomic.Int64
	all    chan struct{} // gets a value when target is reached
	group  sync.WaitGroup
	leave  []func()
}

// "A slow or dead watcher never delays a writer or another watcher and does not
// hold memory after it is gone."
func TestWatchers(t *testing.T) {
	server, api := start(t, build(t), t.TempDir())
	defer stop(t, server)
	must := func(method, path string, in, out any) {
		t.Helper()
		if err := api.Do(t.Context(), method, path, in, out); err != nil {
			t.Fatal(err)
		}
	}
	var made struct {
		Metadata struct{ ResourceVersion string }
	}
	must(http.MethodPost, configMaps, named("small", map[string]any{"small": "yes"}), nil)
	must(http.MethodPost, configMaps, named("large", nil), &made)

	write := func(i int) time.Duration {
		t.Helper()
		began := time.Now()
		must(http.MethodPatch, configMaps+"/small", data(fmt.Sprint(i), 1000), nil)
		return time.Since(began)
	}
	for i := range 20 { // connections, caches
		write(i)
	}
	before := measure(t, server, api)
	alone := latencies(write)
	t.Logf("nobody watches:               %s; writing takes %s", before, alone)

	stuck := *watchers / 100
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	must(http.MethodGet, configMaps+"/small", nil, &made)
	a := &audience{T: t, server: server, ctx: ctx, from: made.Metadata.ResourceVersion, all: make(chan struct{}, 1)}
	a.read(*watchers - stuck)
	watched, took := a.follow(*watchers-stuck, write)
	during := measure(t, server, api)
	t.Logf("%6d read:                  %s; writing takes %s; %.0f events/s", *watchers-stuck, during, watched, perSecond(*watchers-stuck, took))

	a.ignore(stuck)
	for i := range 40 { // more than what is between them and the server can hold
		must(http.MethodPatch, configMaps+"/large", data(fmt.Sprint(i), 500_000), nil)
	}
	disturbed, took := a.follow(*watchers-stuck, write)
	with := measure(t, server, api)
	t.Logf("%6d more that never read:  %s; writing takes %s; %.0f events/s", stuck, with, disturbed, perSecond(*watchers-stuck, took))
	t.Logf("writing takes %.2f times as long with those that never read, %.1f times as long as alone", disturbed.ratio(watched), disturbed.ratio(alone))
	if disturbed.ratio(watched) > 5 {
		t.Errorf("those that never read delay writers: %s without, %s with them", watched, disturbed)
	}

	cancel()
	a.end()
	after := a.quiet(api, before)
	t.Logf("all are gone:                 %s", after)
	if most := before.heap + before.heap/2 + 8<<20; after.heap > most {
		t.Errorf("of watchers that are gone %s of heap are left, there were %s before", megabytes(after.heap), megabytes(before.heap))
	}
}

func named(name string, labels map[string]any) any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "labels": labels}}
}

// data is a merge patch of some size.
func data(value string, size int) any {
	return map[string]any{"data": map[string]any{"value": value, "padding": strings.Repeat("x", size)}}
}

// A spread is how long something takes.
type spread struct{ median, worst time.Duration } // worst: of ninety-nine in a hundred

func (s spread) String() string {
	return fmt.Sprintf("%v (p50), %v (p99)", s.median.Round(10*time.Microsecond), s.worst.Round(10*time.Microsecond))
}

func (s spread) ratio(to spread) float64 { return float64(s.median) / float64(to.median) }

// latencies writes one after the other.
func latencies(write func(i int) time.Duration) spread {
	var all []time.Duration
	for i := range *writes {
		all = append(all, write(i))
	}
	slices.Sort(all)
	return spread{all[len(all)/2], all[len(all)*99/100]}
}

func perSecond(readers int, took time.Duration) float64 {
	return float64(readers**writes) / took.Seconds()
}

// follow writes, and returns how long each write took, and all until everybody has
// seen them.
func (a *audience) follow(readers int, write func(i int) time.Duration) (spread, time.Duration) {
	a.Helper()
	a.seen.Store(0)
	a.target.Store(int64(readers * *writes))
	began := time.Now()
	s := latencies(write)
	select {
	case <-a.all:
	case <-time.After(2 * time.Minute):
		a.Fatalf("%d events were seen, not %d", a.seen.Load(), a.target.Load())
	}
	return s, time.Since(began)
}

// read adds watchers that read. They watch what is small.
func (a *audience) read(n int) {
	a.Helper()
	var ready sync.WaitGroup
	for range (n + 999) / 1000 {
		client, err := process.Client(a.server.Kubeconfig)
		if err != nil {
			a.Fatal(err)
		}
		a.leave = append(a.leave, client.CloseIdleConnections)
		for range min(n, 1000) {
			ready.Add(1)
			a.group.Go(func() { a.watch(client, ready.Done) })
		}
		n -= 1000
	}
	ready.Wait()
}

func (a *audience) watch(client *http.Client, ready func()) {
	response, err := a.open(client, "small=yes")
	ready()
	if err != nil {
		a.Error(err)
		return
	}
	defer response.Body.Close()
	buf := make([]byte, 4<<10)
	for {
		n, err := response.Body.Read(buf)
		if lines := int64(bytes.Count(buf[:n], []byte{'\n'})); lines > 0 && a.seen.Add(lines) == a.target.Load() {
			a.all <- struct{}{}
		}
		if err != nil {
			if a.ctx.Err() == nil {
				a.Errorf("a watch ended: %v", err)
			}
			return
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

// ignore adds watchers of everything that never read: some hold a stream among
// others, the most a connection.
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

// end has everybody leave.
func (a *audience) end() {
	a.group.Wait()
	for _, leave := range slices.Backward(a.leave) {
		leave()
	}
}

// quiet waits until the server has noticed that nobody watches any more.
func (a *audience) quiet(api process.API, before footprint) footprint {
	a.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		now := measure(a.T, a.server, api)
		if now.goroutines <= before.goroutines+10 {
			return now
		}
		if time.Now().After(deadline) {
			a.Errorf("%d goroutines are left, there were %d before", now.goroutines, before.goroutines)
			return now
		}
	}
}
