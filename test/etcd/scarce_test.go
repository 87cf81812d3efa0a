package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/scarce"
)

// Three servers over an etcd of three members allocate no address, no port, no node and no disruption
// twice, and leak none, whichever of them die, freeze or are cut off meanwhile. Between faults, the
// test checks every server.
func TestNothingIsGivenTwiceInTrouble(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	f := newFleet(t, scarce.Flags...)
	ledger, api := scarce.NewLedger(), must[process.API](t)(f.client())
	if err := scarce.Prepare(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	var clients []*scarce.Client
	for i := range *writers {
		clients = append(clients, scarce.NewClient(i, *seed, ledger))
	}
	over := time.Now().Add(*duration)
	looks := 0
	for ; looks == 0 || time.Now().Before(over); looks++ {
		if err := ledger.Grant(t.Context(), api, f.random.Int64N(10)); err != nil {
			t.Fatal(err)
		}
		f.stint(clients, min(*duration, 10*time.Second))
		for i, s := range f.servers {
			stored, err := scarce.Read(t.Context(), f.only(s))
			if err != nil {
				t.Fatal(err)
			}
			if err := ledger.Verify(stored, false); err != nil {
				t.Fatalf("server %d, at look %d: %v", i, looks, err)
			}
		}
	}
	if err := scarce.Fill(t.Context(), api); err != nil {
		t.Error(err)
	}
	for _, s := range f.servers {
		if err := s.process.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%v, %d looks: %s", f.made, looks, ledger)
}

// only returns a client of one server.
func (f *fleet) only(s *server) process.API {
	f.Helper()
	client, err := process.Client(f.kubeconfig)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.CloseIdleConnections)
	return process.API{Client: client, URL: "https://" + s.address}
}

// stint runs clients during faults, and returns once the faults have ended.
func (f *fleet) stint(clients []*scarce.Client, long time.Duration) {
	f.Helper()
	over, cancel := context.WithTimeout(f.Context(), long)
	defer cancel()
	var asking sync.WaitGroup
	for _, c := range clients {
		asking.Go(func() {
			api, err := f.client()
			if err != nil {
				f.Error(err)
				return
			}
			defer api.Client.CloseIdleConnections()
			for over.Err() == nil {
				err := c.Step(f.Context(), api)
				if err != nil && !process.Unanswered(err) {
					f.Error(err)
					return
				}
				if err != nil {
					_ = pause(over) // the loop then ends, too
				}
			}
		})
	}
	err := f.troubles(f.Context(), over)
	asking.Wait()
	if err == nil {
		err = f.recovered(f.Context())
	}
	if err != nil || f.Failed() {
		f.Fatal(fmt.Errorf("in trouble: %w", err))
	}
}
