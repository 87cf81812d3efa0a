package footprint

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/test/corpus"
	"github.com/anykind/anykind/test/process"
)

var published = flag.Int("published", 0, "number of definitions to load, repeating those of the corpus; 0 skips the test")

// The test measures the cost of many definitions of realistic sizes for a server, and for clients that
// read the documents about all of them.
func TestPublishedDefinitions(t *testing.T) {
	if *published == 0 {
		t.Skip("takes minutes: -published 2000")
	}
	bodies, bytes := distinct(t, *published)
	server, api := start(t, build(t), t.TempDir())
	defer stop(t, server)
	t.Logf("%-34s %s", "no definition", measure(t, server, api))

	began := time.Now()
	load(t, api, bodies)
	t.Logf("%d definitions, %s of JSON, the last served after %.1f s, %.1f s of CPU",
		len(bodies), megabytes(bytes), time.Since(began).Seconds(), cpu(t, server).Seconds())
	t.Logf("%-34s %s", "then", measure(t, server, api))

	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	const protobuf = "application/com.github.proto-openapi.spec.v%d@v1.0+protobuf"
	for _, ask := range []struct{ what, path, accept string }{
		{"aggregated discovery", "/apis", aggregated},
		{"aggregated discovery again", "/apis", aggregated},
		{"/openapi/v3", "/openapi/v3", ""},
		{"one document of v3", "/openapi/v3/apis/" + groupOf(bodies[0]), ""},
		{"the same in protobuf", "/openapi/v3/apis/" + groupOf(bodies[0]), fmt.Sprintf(protobuf, 3)},
		{"/openapi/v2", "/openapi/v2", ""},
		{"/openapi/v2 in protobuf", "/openapi/v2", fmt.Sprintf(protobuf, 2)},
		{"/openapi/v2 again", "/openapi/v2", ""},
	} {
		before := cpu(t, server)
		took, size, peak := read(t, server, api, ask.path, ask.accept)
		t.Logf("%-34s %8.1f ms, %5d ms of CPU, %s; resident at most %s",
			ask.what, took.Seconds()*1000, (cpu(t, server) - before).Milliseconds(), megabytes(size), megabytes(peak))
	}
	t.Logf("%-34s %s", "then", measure(t, server, api))
	select {
	case <-time.After(time.Minute):
	case <-t.Context().Done():
	}
	t.Logf("%-34s %s", "idle for a minute", measure(t, server, api))
}

// distinct returns n definitions: those of the corpus, each time around in groups of their own.
func distinct(t *testing.T, n int) (bodies []map[string]any, bytes int64) {
	t.Helper()
	all, err := corpus.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		body := maps.Clone(all[i%len(all)])
		spec := maps.Clone(body["spec"].(map[string]any))
		group := fmt.Sprintf("n%d.%s", i/len(all), strings.Replace(spec["group"].(string), "k8s.io", "example.com", 1))
		spec["group"] = group
		body["spec"] = spec
		body["metadata"] = map[string]any{"name": spec["names"].(map[string]any)["plural"].(string) + "." + group}
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		bodies, bytes = append(bodies, body), bytes+int64(len(data))
	}
	return bodies, bytes
}

func groupOf(definition map[string]any) string {
	spec := definition["spec"].(map[string]any)
	version := spec["versions"].([]any)[0].(map[string]any)
	return fmt.Sprintf("%s/%s", spec["group"], version["name"])
}

// load creates definitions and checks that the last one is served. A definition is in effect with its
// response, so no wait is needed.
func load(t *testing.T, api process.API, bodies []map[string]any) {
	t.Helper()
	var all sync.WaitGroup
	const clients = 4
	for part := range clients {
		all.Go(func() {
			for i := part; i < len(bodies); i += clients {
				if err := api.Do(t.Context(), http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", bodies[i], nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	text(t, api, "/apis/"+groupOf(bodies[len(bodies)-1]))
}

// cpu returns the CPU time of the process, if the system reports it. It is the duration of a response
// on an idle machine.
func cpu(t *testing.T, server *process.Server) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.PID()))
	if err != nil {
		return 0
	}
	// The fields after the process name, which may contain blanks: the times are 12th and 13th, in
	// hundredths of a second.
	values := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	var ticks int64
	for _, field := range values[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// read gets a path and returns the duration of the response, its length, and the peak memory of the
// process meanwhile.
func read(t *testing.T, server *process.Server, api process.API, path, accept string) (took time.Duration, size, peak int64) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	ctx, done := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for look := time.NewTicker(20 * time.Millisecond); ; {
			peak = max(peak, resident(t, server))
			select {
			case <-look.C:
			case <-ctx.Done():
				look.Stop()
				return
			}
		}
	})
	began := time.Now()
	response, err := api.Client.Do(r)
	if err == nil {
		size, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	took = time.Since(began)
	done()
	watching.Wait()
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v %v", path, response, err)
	}
	return took, size, peak
}
