// Package footprint measures the program from outside: the time of its start, its memory, and the cost
// of an unused definition.
//
// It prints the measurements and asserts those that do not depend on the machine.
package footprint

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// start starts the program on a folder, and stops it at the end of the test.
func start(t *testing.T, program, dir string) (*process.Server, process.API) {
	t.Helper()
	server, err := process.Start(t.Context(), program, dir, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := process.Client(server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return server, process.API{Client: client, URL: server.URL}
}

func stop(t *testing.T, server *process.Server) {
	t.Helper()
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

func build(t *testing.T) string {
	t.Helper()
	program, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestStart(t *testing.T) {
	program, dir := build(t), t.TempDir()
	for _, what := range []string{"first start, which makes certificates", "second start", "third start"} {
		server, api := start(t, program, dir)
		if said := text(t, api, "/readyz"); said != "ok" {
			t.Errorf("said that it was ready, then %q", said)
		}
		t.Logf("%-38s ready after %3d ms, resident %s", what, server.Ready.Milliseconds(), megabytes(resident(t, server)))
		stop(t, server)
	}
}

// Some seconds after its start a server has what it needs to wait. How much of the program
// is resident until then is up to the system, which maps around each page that is used
// what it has in one piece.
func TestIdle(t *testing.T) {
	program, dir, mostIdle := build(t), t.TempDir(), recorded(t, "idle MB")
	for _, what := range []string{"first start, which makes what every cluster has", "second start"} {
		server, api := start(t, program, dir)
		mapped := value(t, server, "RssFile:")
		if mapped == 0 {
			t.Skip("the system does not say what is resident")
		}
		look, deadline := time.NewTicker(20*time.Millisecond), time.After(waitTimeout)
		for now := mapped; now > mapped/2; now = value(t, server, "RssFile:") {
			select {
			case <-look.C:
			case <-deadline:
				t.Fatalf("%s of files are resident, as if the server were still starting", megabytes(now))
			}
		}
		look.Stop()
		idle := resident(t, server)
		t.Logf("%s: %s of files mapped when ready; idle, resident %s", what, megabytes(mapped), megabytes(idle))
		if idle > mostIdle {
			t.Errorf("%s are resident, of at most %s", megabytes(idle), megabytes(mostIdle))
		}
		if said := text(t, api, "/readyz"); said != "ok" {
			t.Errorf("idle, and says %q", said)
		}
		stop(t, server)
	}
}

const definitions = 1000

// An unused definition costs its bytes, and no goroutine.
func TestIdleDefinitions(t *testing.T) {
	program, dir := build(t), t.TempDir()
	server, api := start(t, program, dir)
	before := measure(t, server, api)
	t.Logf("no definition:      %s", before)
	var all sync.WaitGroup
	for part := range 4 {
		all.Go(func() {
			for i := part; i < definitions; i += 4 {
				if err := api.Do(t.Context(), http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(i), nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	after := measure(t, server, api)
	t.Logf("%d definitions:   %s", definitions, after)
	after.each(t, before)
	stop(t, server)

	server, api = start(t, program, dir)
	defer stop(t, server)
	again := measure(t, server, api)
	t.Logf("after a restart:    %s, ready after %d ms", again, server.Ready.Milliseconds())
	again.each(t, before)
	var list struct{ Items []struct{} }
	if err := api.Do(t.Context(), http.MethodGet, "/apis/group7.example.com/v1/kind7s", nil, &list); err != nil {
		t.Error(err)
	}
}

// A footprint has the resource usage of a process at one moment.
type footprint struct {
	resident   int64
	heap       int64 // after a garbage collection
	goroutines int64
}

func (f footprint) String() string {
	return fmt.Sprintf("resident %s, heap %s, %d goroutines", megabytes(f.resident), megabytes(f.heap), f.goroutines)
}

// each prints the cost of one definition, and fails if it costs a goroutine.
func (f footprint) each(t *testing.T, before footprint) {
	t.Helper()
	t.Logf("  each definition:  resident %d B, heap %d B, goroutines %.3f",
		(f.resident-before.resident)/definitions, (f.heap-before.heap)/definitions, float64(f.goroutines-before.goroutines)/definitions)
	if f.goroutines > before.goroutines+definitions/20 {
		t.Errorf("%d idle definitions made %d goroutines", definitions, f.goroutines-before.goroutines)
	}
}

func measure(t *testing.T, server *process.Server, api process.API) footprint {
	t.Helper()
	text(t, api, "/debug/pprof/heap?gc=1")
	metrics := text(t, api, "/metrics")
	return footprint{
		resident:   resident(t, server),
		heap:       metric(t, metrics, "go_memstats_heap_alloc_bytes"),
		goroutines: metric(t, metrics, "go_goroutines"),
	}
}

func text(t *testing.T, api process.API, path string) string {
	t.Helper()
	data, err := api.Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func metric(t *testing.T, metrics, name string) int64 {
	t.Helper()
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return int64(f)
		}
	}
	t.Fatalf("/metrics has no %s", name)
	return 0
}

// resident returns the resident memory of the process, if the system reports it.
func resident(t *testing.T, server *process.Server) int64 {
	t.Helper()
	return value(t, server, "VmRSS:")
}

// value returns a value in bytes from the status of a process.
func value(t *testing.T, server *process.Server, name string) int64 {
	t.Helper()
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(server.PID()), "status"))
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) == 3 && fields[0] == name {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	return 0
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// definition returns the nth of many definitions of the usual size.
func definition(n int) map[string]any {
	plural, group := fmt.Sprintf("kind%ds", n), fmt.Sprintf("group%d.example.com", n%50)
	properties := map[string]any{}
	for i := range 20 {
		properties[fmt.Sprintf("field%d", i)] = map[string]any{
			"type":        "string",
			"description": "A field of which there are many, as there are in the definitions that people have.",
		}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group,
			"scope": "Namespaced",
			"names": map[string]any{"plural": plural, "singular": fmt.Sprintf("kind%d", n), "kind": fmt.Sprintf("Kind%d", n)},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type":       "object",
					"properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
				}},
			}},
		},
	}
}
