package linear

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anykind/anykind"
	"github.com/anykind/anykind/test/process"
)

var (
	rounds   = flag.Int("rounds", 12, "number of histories to record and check for each store; at most 4 with -short")
	clients  = flag.Int("clients", 8, "number of clients")
	requests = flag.Int("requests", 50, "number of requests of a client in a round")
	seed     = flag.Uint64("seed", 0, "of what is random; 0 takes another one each time")
)

// Reads return the newest state, conditional writes apply to the state that their client saw, and
// lists are consistent: in memory and on disk.
func TestLinear(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	rounds := *rounds
	if testing.Short() {
		rounds = min(rounds, 4)
	}
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
			for round := range rounds {
				r, err := Check(t.Context(), Options{
					Seed: *seed + uint64(round), Clients: *clients, Requests: *requests, Namespace: fmt.Sprintf("round-%d", round),
					Client: func() (process.API, error) {
						client, err := process.Client(kubeconfig)
						return process.API{Client: client, URL: server.URL()}, err
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.Undecided {
					t.Logf("round %d: the order was not found in time", round)
				}
				made, took = made+r.Requests, took+r.Took
			}
			t.Logf("%d requests in %d rounds; finding their order took %v", made, rounds, took.Round(time.Millisecond))
		})
	}
}
