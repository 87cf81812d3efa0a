package controller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
)

// A candidate reports on a channel when its work begins and ends.
type candidate struct {
	working chan bool
	stop    func()
}

func election(w *controllertest.World, name string) *controller.Election {
	return &controller.Election{Objects: w.Objects(), Identity: name}
}

func newCandidate(w *controllertest.World, name string) *candidate {
	return candidateOf(w, election(w, name))
}

func candidateOf(w *controllertest.World, e *controller.Election) *candidate {
	c := &candidate{working: make(chan bool, 100)}
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

// After a server stops, another one takes over at once. After a crash, the lease expires first.
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

// A server that cannot renew its Lease stops, and releases the Lease if it can. Other Terms have Leases of their own, and
// other servers wait for the duration in the Lease.
func TestTermOfElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.New(t, nil)
		w.Create("namespace kube-system")
		w.Create("lease kube-system/own", func(_ *controllertest.World, t object.Tree) {
			t["spec"] = object.Tree{"holderIdentity": "dead", "leaseDurationSeconds": int64(40), "renewTime": "2000-01-01T00:00:00.000000Z"}
		})
		var refused atomic.Bool
		w.Admit = func(a *registry.Admission) error {
			if refused.Load() && a.Target.Name == "own" && kind.Text(a.Object, "spec", "holderIdentity") == "first" {
				return errors.New("no")
			}
			return nil
		}
		of := election(w, "first")
		of.Term = controller.Term{Lease: "own", Duration: 15 * time.Second, Deadline: 10 * time.Second, Period: 2 * time.Second}
		began := time.Now()
		first, other := candidateOf(w, of), newCandidate(w, "other")
		if !<-other.working || time.Since(began) > controller.RenewPeriod {
			t.Error("the Lease of another Term matters")
		}
		if !<-first.working || time.Since(began) < 40*time.Second {
			t.Errorf("the Lease of the dead server counted for %v", time.Since(began))
		}
		refused.Store(true)
		lost := time.Now()
		if <-first.working || time.Since(lost) > 10*time.Second {
			t.Errorf("the server stopped after %v", time.Since(lost))
		}
		synctest.Wait()
		if holder := kind.Text(w.Get("lease kube-system/own"), "spec", "holderIdentity"); holder != "" {
			t.Errorf("%s still holds the Lease", holder)
		}
		refused.Store(false)
		if !<-first.working {
			t.Error("the server does not lead again")
		}
		first.stop()
		other.stop()
	})
}

// lateAnswers is a store with slow responses to writes.
type lateAnswers struct {
	kv.Backend
	late *atomic.Int64 // a time.Duration
}

func (b lateAnswers) Commit(ctx context.Context, w kv.Write) (int64, error) {
	revision, err := b.Backend.Commit(ctx, w)
	select {
	case <-time.After(time.Duration(b.late.Load())):
		return revision, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// A server that learns late that it holds the Lease does not work at the same time as another.
func TestLateAnswersMakeNoSecondLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.New(t, nil)
		w.Create("namespace kube-system")
		slow := election(w, "slow")
		late := new(atomic.Int64)
		slow.Objects.Registry = registry.New(lateAnswers{w.Backend, late}, w.Cache, registry.Options{})
		late.Store(int64(9 * time.Second))
		first := candidateOf(w, slow)
		time.Sleep(500 * time.Millisecond) // the write is committed before the response
		second := newCandidate(w, "second")
		working := map[*candidate]bool{}
		note := func() {
			for _, c := range []*candidate{first, second} {
				for len(c.working) > 0 {
					working[c] = <-c.working
				}
			}
			if working[first] && working[second] {
				t.Fatal("two servers do the work")
			}
		}
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			note()
		}
		late.Store(0)
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			note()
		}
		if !working[first] && !working[second] {
			t.Error("no server does the work after the store has recovered")
		}
		first.stop()
		second.stop()
	})
}
