package egress

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var churn = flag.Duration("churn", 3*time.Second, "time for which TestChurn kills and starts Konnectivity's programs")

const (
	// clients is the number of concurrent clients.
	clients = 4
	// pause is their pause between two rounds: without a connection, an error is quick.
	pause = 10 * time.Millisecond
)

// Agents and the server of Konnectivity start and stop during requests. The API server leaks no
// goroutine, no open file and no tunnel.
func TestChurn(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"grpc", "http-connect"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			k := newKonnectivity(t, mode, "cluster", "controlplane")
			h := startHook(t, k.authority, "hook.only-the-agent.test", "hook.default.svc")
			a := startAnykind(t, "--egress-selector-config-file="+k.config, "--disable-admission-plugins=ServiceAccount")
			closed, err := freePorts(1)
			must(t, err)
			a.populate(h, k.authority.CertPEM(), closed[0], domain)
			k.startServer(t)
			k.startAgent(t)
			k.startAgent(t)
			must(t, a.everything())
			before := a.held()

			var done, failed atomic.Int64
			stop := make(chan struct{})
			var group sync.WaitGroup
			for range clients {
				group.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(pause):
						}
						if err := a.everything(); err != nil {
							failed.Add(1)
						} else {
							done.Add(1)
						}
					}
				})
			}
			events := k.trouble(t, a, *churn)
			close(stop)
			group.Wait()
			must(t, a.everything())
			t.Logf("%d events, %d rounds of requests that worked and %d that did not", events, done.Load(), failed.Load())
			if done.Load() == 0 {
				t.Error("nothing worked meanwhile")
			}
			err = within(t, time.Minute, func() error {
				now := a.held()
				if !now.atMost(before) {
					return fmt.Errorf("the server held %v before, and %v a minute after", before, now)
				}
				t.Logf("before %v, after %v", before, now)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// trouble kills and starts agents and the server for a while. At the end, all are running.
func (k *konnectivity) trouble(t *testing.T, a *api, long time.Duration) (events int) {
	t.Helper()
	for deadline := time.Now().Add(long); time.Now().Before(deadline); events++ {
		switch rand.IntN(4) {
		case 0:
			k.restartServer(t)
		case 1:
			k.server.kill()
			if err := a.ask("url"); err == nil {
				t.Error("a webhook was asked through a server that is not there")
			}
			k.startServer(t)
			k.awaitAgents(t)
		case 2:
			k.killAgent(t)
			k.startAgent(t)
		case 3:
			k.killAgent(t)
			k.killAgent(t)
			k.startAgent(t)
			k.startAgent(t)
		}
	}
	return events
}

// everything sends requests that use tunnels.
func (a *api) everything() error {
	for _, ask := range []func() error{
		func() error { return a.ask("hook") }, func() error { return a.ask("url") }, a.logs,
	} {
		if err := ask(); err != nil {
			return err
		}
	}
	return nil
}

// held counts the resources of a server.
type held struct{ goroutines, files, tunnels int }

func (h held) String() string {
	return fmt.Sprintf("%d goroutines, %d open files, %d tunnels", h.goroutines, h.files, h.tunnels)
}

// spare allows for clients, which keep a connection or two for their next request.
const spare = 10

func (h held) atMost(before held) bool {
	return h.goroutines <= before.goroutines+spare && h.files <= before.files+spare/2 && h.tunnels == 0
}

var (
	goroutines = regexp.MustCompile(`(?m)^go_goroutines (\S+)$`)
	tunnels    = regexp.MustCompile(`(?m)^konnectivity_network_proxy_client_client_connections\{.*\} (\S+)$`)
)

func (a *api) held() (h held) {
	a.Helper()
	metrics, err := a.raw("/metrics")
	must(a.T, err)
	sum := func(of *regexp.Regexp) (n int) {
		for _, m := range of.FindAllStringSubmatch(metrics, -1) {
			v, err := strconv.ParseFloat(m[1], 64)
			must(a.T, err)
			n += int(v)
		}
		return n
	}
	h.goroutines, h.tunnels = sum(goroutines), sum(tunnels)
	if files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.pid)); err == nil { // on Linux
		h.files = len(files)
	}
	if !strings.Contains(metrics, "go_goroutines") {
		a.Fatal("the server does not say how many goroutines it has")
	}
	return h
}
