package lifecycle

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A candidate says on a channel when it begins to work and when it ends.
type candidate struct {
	working chan bool
	stop    func()
}

func (w *world) election(name string) *Election {
	return &Election{
		Registry: w.objects, Leases: w.kinds["lease"], Identity: name,
		Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
	}
}

func (w *world) candidate(name string) *candidate {
	c := &candidate{working: make(chan bool, 100)}
	e := w.election(name)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- e.Run(ctx, func(ctx context.Context) error {
			c.working <- true
			<-ctx.Done()
			c.working <- false
			return nil
		})
	}()
	c.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
	return c
}

// A server that ends leaves the work to another; one that dies does not renew its
// lease any more.
func TestOneServerAtATimeDoesTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create("namespace kube-system")
		first := w.candidate("first")
		if !<-first.working {
			t.Fatal("the first candidate did not begin")
		}
		second := w.candidate("second")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(first.working)+len(second.working) != 0 {
			t.Fatal("the work changed hands although its server lives")
		}
		first.stop()
		stopped := time.Now()
		if !<-second.working {
			t.Fatal("the second candidate did not begin")
		}
		if took := time.Since(stopped); took > renewPeriod {
			t.Errorf("it took %v until another server did the work that was left to it", took)
		}
		second.stop()
		if held, err := w.election("dead").try(w.ctx); !held || err != nil {
			t.Fatal("the work that was left was not taken", err)
		}
		died := time.Now()
		third := w.candidate("third")
		if !<-third.working {
			t.Fatal("the third candidate did not begin")
		}
		if took := time.Since(died); took < leaseDuration-2*renewPeriod || took > leaseDuration+2*renewPeriod {
			t.Errorf("it took %v until another server did the work of a dead one", took)
		}
		third.stop()
	})
}
