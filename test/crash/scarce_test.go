package crash

import (
	"context"
	"errors"
	"testing"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/scarce"
)

// The same for scarce resources: addresses and ports of Services, the node of a pod, the disruptions
// of a budget, and pods with graceful deletion.
func TestCrashGivesNothingTwice(t *testing.T) {
	r := begin(t)
	r.flags = scarce.Flags
	ledger := scarce.NewLedger()
	var clients []client
	for i := range writers {
		c := scarce.NewClient(i, *seed, ledger)
		clients = append(clients, func(ctx context.Context, api process.API, acked func()) error {
			defer api.Client.CloseIdleConnections()
			for ctx.Err() == nil {
				err := c.Step(ctx, api)
				if err == nil {
					acked()
				} else if lost := (*lost)(nil); errors.As(gone(err), &lost) {
					return nil
				} else {
					return err
				}
			}
			return nil
		})
	}
	server := r.start()
	if err := scarce.Prepare(r.Context(), r.api(server)); err != nil {
		t.Fatal(err)
	}
	var stored scarce.Stored
	for round := range kills() {
		if err := ledger.Grant(r.Context(), r.api(server), r.random.Int64N(10)); err != nil {
			t.Fatal(err)
		}
		r.untilKilled(server, clients, 1000)
		server = r.revive()
		var err error
		if stored, err = scarce.Read(r.Context(), r.api(server)); err != nil {
			t.Fatal(err)
		}
		if err := ledger.Verify(stored, true); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if err := scarce.Fill(r.Context(), r.api(server)); err != nil {
		t.Error(err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("%d rounds: %d Services and %d pods were left, %d IPAddresses, and %s", *rounds, len(stored.Services), len(stored.Pods), len(stored.Addresses), ledger)
}
