package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Metrics have the number of objects per resource.
func TestObjectCounts(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	_, metrics := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/metrics", "", "")
	for _, want := range []string{
		`apiserver_resource_objects{group="",resource="namespaces"} 4`, `apiserver_resource_objects{group="",resource="pods"} 0`,
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("metrics do not have %s", want)
		}
	}
	for _, computed := range []string{"componentstatuses", "tokenreviews"} {
		if strings.Contains(metrics, `apiserver_resource_objects{group="",resource="`+computed) {
			t.Errorf("%s are counted", computed)
		}
	}
}

// Metrics have the allocated and the available addresses and ports of Services.
func TestAllocationMetrics(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	services := a.URL() + "/api/v1/namespaces/default/services"
	for body, want := range map[string]int{
		`{"metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`:                  201,
		`{"metadata":{"name":"b"},"spec":{"ports":[{"port":80}],"clusterIP":"10.0.0.1"}}`:             422, // the address of the Service kubernetes
		`{"metadata":{"name":"c"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30001}]}}`: 201,
	} {
		if code, answer := ask(t, c, "POST", services, "application/json", body); code != want {
			t.Fatalf("%d %s", code, answer)
		}
	}
	const addresses, ports = "kube_apiserver_clusterip_allocator_", "kube_apiserver_nodeport_allocator_"
	want := []string{
		addresses + `allocation_total{cidr="10.0.0.0/24",scope="dynamic"} 2`, addresses + `allocation_total{cidr="10.0.0.0/24",scope="static"} 1`,
		addresses + `allocation_errors_total{cidr="10.0.0.0/24",scope="static"} 1`, addresses + `allocation_duration_seconds_count{cidr="10.0.0.0/24"} 3`,
		addresses + `allocated_ips{cidr="10.0.0.0/24"} 3`, addresses + `available_ips{cidr="10.0.0.0/24"} 251`,
		ports + `allocation_total{scope="dynamic"} 1`, ports + `allocation_total{scope="static"} 1`, ports + "allocated_ports 2", ports + "available_ports 2766",
	}
	// The last Service is counted after the cache has received it.
	var missing []string
	if !poll(t, func() bool {
		_, metrics := ask(t, c, "GET", a.URL()+"/metrics", "", "")
		missing = slices.DeleteFunc(slices.Clone(want), func(line string) bool { return strings.Contains(metrics, "\n"+line+"\n") })
		return len(missing) == 0
	}) {
		t.Fatalf("metrics do not have %s", strings.Join(missing, "\n"))
	}
}

// Metrics have the number and the size of watch events.
func TestSentEvents(t *testing.T) {
	t.Parallel() // it waits for the ends of watches
	a := start(t, Options{})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	bytes := 0
	for range 2 {
		_, events := ask(t, c, "GET", a.URL()+"/api/v1/namespaces?watch=1&timeoutSeconds=1", "", "")
		if n := strings.Count(events, "\n"); n != 4 {
			t.Fatalf("%d events: %s", n, events)
		}
		bytes += len(events)
	}
	_, metrics := ask(t, c, "GET", a.URL()+"/metrics", "", "")
	const of = `{group="",resource="namespaces",version="v1"`
	for _, want := range []string{
		"apiserver_watch_events_total" + of + "} 8", "apiserver_watch_events_sizes_sum" + of + "} " + strconv.Itoa(bytes),
		"apiserver_watch_events_sizes_bucket" + of + `,le="131072"} 8`,
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("metrics do not have %s", want)
		}
	}
}

// Metrics have the size of the store's files. A store in memory has none.
func TestStoreSize(t *testing.T) {
	size := regexp.MustCompile(`(?m)^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} (\S+)$`)
	dir := t.TempDir()
	onDisk := func() (bytes float64) {
		files, _ := filepath.Glob(filepath.Join(dir, "anykind.db*"))
		for _, name := range files {
			if info, err := os.Stat(name); err == nil {
				bytes += float64(info.Size())
			}
		}
		return bytes
	}
	shown := func(o Options) (said []string, least, most float64) {
		a := start(t, o)
		defer stop(t, a)
		least = onDisk()
		_, metrics := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/metrics", "", "")
		return size.FindStringSubmatch(metrics), least, onDisk()
	}
	said, least, most := shown(Options{Dir: dir})
	if said == nil {
		t.Fatal("metrics do not have the size of the store")
	}
	if bytes, err := strconv.ParseFloat(said[1], 64); err != nil || bytes == 0 || bytes < least || bytes > most {
		t.Errorf("metrics have %s bytes, %v; the files have %.0f to %.0f", said[1], err, least, most)
	}
	if said, _, _ := shown(Options{}); said != nil {
		t.Errorf("a store in memory has a size: %v", said)
	}
}
