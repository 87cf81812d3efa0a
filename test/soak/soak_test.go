package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var duration = flag.Duration("duration", 20*time.Second, "duration of the load; 5 s with -short")

const (
	nodes   = 500
	pods    = 2000
	speed   = 24 // times that of a real cluster
	workers = 16
	// measurements of a run. The first quarter is the warm-up.
	measurements = 20
)

// A cluster is the load of one server.
type cluster struct {
	*testing.T
	server *process.Server
	writes atomic.Int64
}

// Each node renews its Lease every 10 seconds and its status every 5 minutes. A pod changes its status every 10 minutes. There
// are 5 Events a second. An Event lives for an hour.
const writesPerSecond = speed * (nodes/10 + nodes/300 + pods/600 + 5)

func TestSoak(t *testing.T) {
	if testing.Short() {
		*duration = 5 * time.Second
	}
	path, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	eventTTL := max(*duration/speed, time.Second)
	server, err := process.Start(t.Context(), path, dir, "", "--event-ttl", eventTTL.String(), "--disable-admission-plugins", "ServiceAccount")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	c := &cluster{T: t, server: server}
	c.fill()
	var found []usage
	ctx, cancel := context.WithTimeout(t.Context(), *duration)
	defer cancel()
	var load sync.WaitGroup
	for worker := range workers {
		load.Go(func() { c.work(ctx, worker) })
	}
	ticker := time.NewTicker(*duration / measurements)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
			found = append(found, c.measure(dir))
		case <-ctx.Done():
		}
	}
	load.Wait()
	t.Logf("%d writes of %d in %v", c.writes.Load(), int(duration.Seconds()*writesPerSecond), *duration)
	flat(t, found)
}

func (c *cluster) api() process.API {
	client, err := process.Client(c.server.Kubeconfig)
	if err != nil {
		c.Fatal(err)
	}
	return process.API{Client: client, URL: c.server.URL}
}

// fill creates nodes, their Leases, and pods.
func (c *cluster) fill() {
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			api := c.api()
			defer api.Client.CloseIdleConnections()
			for n := worker; n < nodes; n += workers {
				c.must(api, http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": fmt.Sprint("n", n)}})
				c.must(api, http.MethodPost, leases, lease(n))
			}
			for n := worker; n < pods; n += workers {
				c.must(api, http.MethodPost, podPath, object{
					"metadata": object{"name": fmt.Sprint("p", n)},
					"spec":     object{"nodeName": fmt.Sprint("n", n%nodes), "containers": []object{{"name": "c", "image": "i"}}},
				})
			}
		})
	}
	all.Wait()
}

type object = map[string]any

const (
	leases  = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	podPath = "/api/v1/namespaces/default/pods"
)

func lease(n int) object {
	return object{
		"metadata": object{"name": fmt.Sprint("n", n)},
		"spec":     object{"holderIdentity": fmt.Sprint("n", n), "leaseDurationSeconds": 40, "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")},
	}
}

func (c *cluster) must(api process.API, method, path string, in object) {
	if err := api.Do(c.Context(), method, path, in, nil); err != nil {
		c.Error(err)
	}
}

// work sends the share of one worker at its rate.
func (c *cluster) work(ctx context.Context, worker int) {
	api := c.api()
	defer api.Client.CloseIdleConnections()
	r := rand.New(rand.NewPCG(uint64(worker), 1))
	ticker := time.NewTicker(time.Second * workers / writesPerSecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := c.write(ctx, api, r); err != nil && ctx.Err() == nil {
			c.Error(err)
			return
		}
		c.writes.Add(1)
	}
}

// write sends one write of a mix.
func (c *cluster) write(ctx context.Context, api process.API, r *rand.Rand) error {
	node, pod := r.IntN(nodes), r.IntN(pods)
	now := time.Now().UTC().Format(time.RFC3339)
	switch n := r.IntN(writesPerSecond / speed); {
	case n < nodes/10:
		return api.Do(ctx, http.MethodPatch, leases+"/n"+strconv.Itoa(node), lease(node), nil)
	case n < nodes/10+nodes/300:
		status := object{"status": object{"conditions": []object{{"type": "Ready", "status": "True", "lastHeartbeatTime": now, "reason": "KubeletReady"}}}}
		return api.Do(ctx, http.MethodPatch, "/api/v1/nodes/n"+strconv.Itoa(node)+"/status", status, nil)
	case n < nodes/10+nodes/300+pods/600:
		status := object{"status": object{"phase": "Running", "message": now, "conditions": []object{{"type": "Ready", "status": "True", "lastProbeTime": now}}}}
		return api.Do(ctx, http.MethodPatch, podPath+"/p"+strconv.Itoa(pod)+"/status", status, nil)
	default:
		event := object{
			"metadata":       object{"generateName": "e-"},
			"involvedObject": object{"kind": "Pod", "namespace": "default", "name": fmt.Sprint("p", pod)},
			"reason":         "Pulled", "message": "image " + now, "type": "Normal",
		}
		return api.Do(ctx, http.MethodPost, "/api/v1/namespaces/default/events", event, nil)
	}
}

// usage is the resources that a server holds.
type usage struct{ memory, disk, descriptors, goroutines float64 }

var (
	rssAnon    = regexp.MustCompile(`RssAnon:\s*(\d+) kB`)
	goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
)

func (c *cluster) measure(dir string) (u usage) {
	c.Helper()
	proc := fmt.Sprintf("/proc/%d/", c.server.PID())
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		c.Skip("the system has no /proc: ", err)
	}
	open, err := os.ReadDir(proc + "fd")
	if err != nil {
		c.Fatal(err)
	}
	api := c.api()
	defer api.Client.CloseIdleConnections()
	metrics, err := api.Read(context.WithoutCancel(c.Context()), "/metrics")
	if err != nil {
		c.Fatal(err)
	}
	number := func(text string, of *regexp.Regexp) float64 {
		found := of.FindStringSubmatch(text)
		if found == nil {
			c.Fatalf("there is no %v", of)
		}
		n, _ := strconv.ParseFloat(found[1], 64)
		return n
	}
	u.memory = number(string(status), rssAnon) / 1e3
	u.goroutines = number(string(metrics), goroutines)
	u.descriptors = float64(len(open))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		c.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && strings.Contains(f, "anykind.db") {
			u.disk += float64(info.Size()) / 1e6
		}
	}
	return u
}

// flat compares the last quarter of a run with the second one.
func flat(t *testing.T, found []usage) {
	t.Helper()
	if len(found) < measurements/2 {
		t.Fatalf("only %d measurements", len(found))
	}
	for i, u := range found {
		t.Logf("%2d: %3.0f MB of memory, %4.0f MB of files, %3.0f descriptors, %4.0f goroutines", i, u.memory, u.disk, u.descriptors, u.goroutines)
	}
	n := len(found)
	for name, of := range map[string]struct {
		get   func(usage) float64
		slack float64
	}{
		"MB of memory": {func(u usage) float64 { return u.memory }, 32},
		"MB of files":  {func(u usage) float64 { return u.disk }, 32},
		"descriptors":  {func(u usage) float64 { return u.descriptors }, 10},
		"goroutines":   {func(u usage) float64 { return u.goroutines }, 50},
	} {
		most := func(some []usage) (m float64) {
			for _, u := range some {
				m = max(m, of.get(u))
			}
			return m
		}
		early, late := most(found[n/4:n/2]), most(found[3*n/4:])
		if late > early*1.2+of.slack {
			t.Errorf("%s: at most %.0f in the second quarter, %.0f in the last one", name, early, late)
		}
	}
}
