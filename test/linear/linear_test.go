package linear

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/anykind/anykind"
	"github.com/anykind/anykind/test/process"
)

var (
	rounds   = flag.Int("rounds", 12, "how many histories are made and checked, of each store")
	clients  = flag.Int("clients", 8, "how many clients there are")
	requests = flag.Int("requests", 50, "how many requests each of them makes in a round")
	seed     = flag.Uint64("seed", 0, "of what is random; 0 takes another one each time")
)

// Every read is of the newest state, every write is of what its client saw, and
// lists are of one moment: in memory and on disk.
func TestLinear(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	for _, store := range []struct{ name, dir string }{{"memory", ""}, {"disk", t.TempDir()}} {
		t.Run(store.name, func(t *testing.T) {
			server, err := anykind.Start(t.Context(), anykind.Options{Dir: store.dir})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Close(); err != nil {
					t.Error(err)
				}
			}()
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(kubeconfig, server.Kubeconfig(), 0o600); err != nil {
				t.Fatal(err)
			}
			made, took := 0, time.Duration(0)
			for round := range *rounds {
				n, d := check(t, server.URL(), kubeconfig, round)
				made, took = made+n, took+d
			}
			t.Logf("%d requests in %d rounds; finding their order took %v", made, *rounds, took.Round(time.Millisecond))
		})
	}
}

// check makes one history and looks for its order.
func check(t *testing.T, url, kubeconfig string, round int) (int, time.Duration) {
	t.Helper()
	history := record(t, url, kubeconfig, round)
	began := time.Now()
	result, info := porcupine.CheckOperationsVerbose(model(), history, time.Minute)
	switch result {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Logf("round %d: the order was not found in time", round)
	default:
		at := filepath.Join(os.TempDir(), fmt.Sprintf("linear-%d-%d.html", *seed, round))
		err := porcupine.VisualizePath(model(), info, at)
		t.Fatalf("round %d: there is no order in which these answers are right; %s shows them (%v)", round, at, err)
	}
	return len(history), time.Since(began)
}

// record has clients make requests in a namespace of its own.
func record(t *testing.T, url, kubeconfig string, round int) (history []porcupine.Operation) {
	t.Helper()
	namespace := fmt.Sprintf("round-%d", round)
	began := time.Now()
	var all []*client
	for i := range *clients {
		c, err := process.Client(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		all = append(all, &client{
			number: i, random: rand.New(rand.NewPCG(*seed, uint64(round)<<16+uint64(i))),
			api: process.API{Client: c, URL: url}, path: "/api/v1/namespaces/" + namespace + "/configmaps", began: began,
		})
	}
	in := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}
	if err := all[0].api.Do(t.Context(), http.MethodPost, "/api/v1/namespaces", in, nil); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, c := range all {
		group.Go(func() { errs[i] = c.run(t.Context(), *requests) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		history = append(history, c.history...)
	}
	return history
}
