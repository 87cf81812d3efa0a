package etcd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/test/process"
)

// put writes keys to etcd as another program would.
func (m *Member) put(t *testing.T, from, to int, key, value string) {
	t.Helper()
	m.in(t, func(ctx context.Context, c *clientv3.Client) error {
		const each = 100
		for i := from; i < to; i += each {
			var ops []clientv3.Op
			for n := i; n < min(i+each, to); n++ {
				ops = append(ops, clientv3.OpPut(fmt.Sprintf(key, n), value))
			}
			if _, err := c.Txn(ctx).Then(ops...).Commit(); err != nil {
				return err
			}
		}
		return nil
	})
}

// held returns the heap of a server after garbage collections, in KiB.
func held(t *testing.T, api process.API) int {
	t.Helper()
	for range 2 { // pools keep their memory during the first one
		if _, err := api.Read(t.Context(), "/debug/pprof/heap?gc=1"); err != nil {
			t.Fatal(err)
		}
	}
	text, err := api.Read(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return int(metric(t, bytes.NewReader(text), "go_memstats_heap_alloc_bytes") / 1024)
}

// Keys under the prefix that are not served are skipped, both existing and changing ones: they take a
// small part of their size in memory.
func TestOthersKeysTakeNoMemory(t *testing.T) {
	const keys = 100_000
	pod := "k8s\x00" + strings.Repeat("p", 1020)
	m := StartMember(t)
	m.put(t, 0, keys/2, "/registry/pods/default/p-%d", pod)
	_, api := run(t, "--etcd-servers", m.Client)
	mustCreate(t, api, "one")
	before := held(t, api)
	m.put(t, keys/2, keys, "/registry/pods/default/p-%d", pod)
	// A consistent read returns after all of these events.
	if _, err := api.Read(t.Context(), configMapsPath); err != nil {
		t.Fatal(err)
	}
	// The controllers may have fallen behind, and then hold 8 MB of events until they have caught up.
	eventually(t, func(context.Context) error {
		after := held(t, api)
		t.Logf("%d KiB with %d keys of others, %d KiB with %d, which are %d KiB", before, keys/2, after, keys, keys)
		if grown := after - before; grown > keys/2/8 {
			return fmt.Errorf("%d keys of 1 KiB that are not served made the server grow by %d KiB", keys/2, grown)
		}
		return nil
	})
	if before > keys/2/2 {
		t.Errorf("a server over %d keys of 1 KiB that are not served holds %d KiB", keys/2, before)
	}
}

// metric returns the sum of a metric of etcd.
func (m *Member) metric(t *testing.T, name string) float64 {
	t.Helper()
	response, err := http.Get(m.Client + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return metric(t, response.Body, name)
}

// metric returns the sum of a metric in the text format.
func metric(t *testing.T, text io.Reader, name string) (sum float64) {
	t.Helper()
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	found := false
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok && (rest[0] == ' ' || rest[0] == '{') {
			n, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
			if err != nil {
				t.Fatal(err)
			}
			sum, found = sum+n, true
		}
	}
	if !found {
		t.Fatalf("there is no metric %s", name)
	}
	return sum
}

// A server has one watch of etcd and one connection to a member, however many kinds and watches there
// are, also while it runs the controllers.
func TestOneWatchAndOneConnectionForAllKinds(t *testing.T) {
	t.Parallel()
	m := StartMember(t)
	way := NewProxy(t, strings.TrimPrefix(m.Client, "http://"))
	_, api := run(t, "--etcd-servers", "http://"+way.Address())
	mustCreate(t, api, "one")
	works := func() {
		// Without running controllers, a namespace would lack its default objects.
		eventually(t, func(ctx context.Context) error {
			_, err := api.Read(ctx, configMapsPath+"/kube-root-ca.crt")
			return err
		})
	}
	one := func() {
		t.Helper()
		eventually(t, func(context.Context) error {
			if watches, connections := m.metric(t, "etcd_debugging_mvcc_watcher_total"), way.open(); watches != 1 || connections != 1 {
				return fmt.Errorf("%v watches of etcd and %d connections to it", watches, connections)
			}
			return nil
		})
	}
	works()
	one()
	const many = 50
	for i := range many {
		crd, resource := definition(i)
		if err := api.Do(t.Context(), http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd, nil); err != nil {
			t.Fatal(err)
		}
		path := "/apis/example.com/v1/" + resource.Resource
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+path+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := api.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		if _, err := bufio.NewReader(stream.Body).ReadBytes('\n'); err != nil {
			t.Fatal(err)
		}
	}
	one()
}
