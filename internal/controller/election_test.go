package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
)

// A candidate says on a channel when it begins to work and when it ends.
type candidate struct {
	working chan bool
	stop    func()
}

func election(w *controllertest.World, name string) *controller.Election {
	return &controller.Election{Objects: w.Objects(), Identity: name}
}

func newCandidate(w *controllertest.World, name string) *candidate {
	c := &candidate{working: make(chan bool, 100)}
	e := election(w, name)
	ctx, cancel := context.WithCancel(w.Ctx)
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
			w.T.Error(err)
		}
	}
	return c
}

// A server that ends leaves the work to another; one that dies does not renew its
// lease any more.
func TestOneServerAtATimeDoesTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.New(t, nil)
		w.Create("namespace kube-system")
		first := newCandidate(w, "first")
		if !<-first.working {
			t.Fatal("the first candidate did not begin")
		}
		second := newCandidate(w, "second")
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
		if took := time.Since(stopped); took > controller.RenewPeriod {
			t.Errorf("it took %v until another server did the work that was left to it", took)
		}
		second.stop()
		if held, err := election(w, "dead").Try(w.Ctx); !held || err != nil {
			t.Fatal("the work that was left was not taken", err)
		}
		died := time.Now()
		third := newCandidate(w, "third")
		if !<-third.working {
			t.Fatal("the third candidate did not begin")
		}
		if took := time.Since(died); took < controller.LeaseDuration-2*controller.RenewPeriod || took > controller.LeaseDuration+2*controller.RenewPeriod {
			t.Errorf("it took %v until another server did the work of a dead one", took)
		}
		third.stop()
	})
}
