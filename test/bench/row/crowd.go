package row

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// informers measures many clients that start at once, as after a restart: each gets all objects and
// their later changes in one watch (WatchList).
func informers(s Size) *Scenario {
	return &Scenario{
		Name: "informers", Title: fmt.Sprintf("%d informers of %d objects start at once", s.Informers, s.Informed), Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		Rows: []Row{
			{ID: "informers", Title: fmt.Sprintf("%d informers of %d objects: all synced", s.Informers, s.Informed), Unit: "ms"},
			{ID: "informers-peak", Title: fmt.Sprintf("%d informers: memory at most meanwhile", s.Informers), Unit: "MB"},
		},
		run: runInformers,
	}
}

func runInformers(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "list"); err != nil {
		return err
	}
	if _, err := r.fill(ctx, k, in("list"), 0, r.size.Informed, clients); err != nil {
		return err
	}
	if err := r.server.ResetPeak(); err != nil {
		return err
	}
	path := k.Objects("list") + "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=600"
	began := time.Now()
	audience, err := load.Watch(ctx, r.server.Target, path, r.size.Informers)
	if err != nil {
		return err
	}
	defer audience.Close()
	// Every object, and the bookmark that ends the initial events.
	events := int64(r.size.Informers) * int64(r.size.Informed+1)
	if err := audience.Wait(ctx, events, 5*time.Minute); err != nil {
		return err
	}
	took := time.Since(began)
	r.put("informers", milliseconds(took), fmt.Sprintf("%.0f events/s", float64(events)/took.Seconds()))
	u, err := r.server.Usage()
	if err != nil {
		return err
	}
	r.put("informers-peak", megabytes(u.Peak), "")
	return nil
}

// fleet measures a mix of controllers: some watch, some read, some write.
func fleet(s Size) *Scenario {
	return &Scenario{
		Name: "fleet", Title: "A fleet of controllers: 100 watchers of 1,000 objects; 16 clients that get, and list 50 of them every tenth time; 8 that patch, and create every fifth time", Pairs: s.Pairs, Sides: server.Programs.AsShipped,
		Rows: []Row{
			{ID: "fleet-reads", Title: "controller fleet: reads", Unit: "/s", Higher: true},
			{ID: "fleet-writes", Title: "controller fleet: writes", Unit: "/s", Higher: true},
			{ID: "fleet-p99", Title: "controller fleet: writes, p99", Unit: "ms"},
			{ID: "fleet-events", Title: "controller fleet: events seen", Unit: "/s", Higher: true},
		},
		run: runFleet,
	}
}

func runFleet(ctx context.Context, r *Run) error {
	const objects, watchers = 1000, 100
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "list", "page"); err != nil {
		return err
	}
	if _, err := r.fill(ctx, k, in("list"), 0, objects, clients); err != nil {
		return err
	}
	if _, err := r.fill(ctx, k, in("page"), 0, 50, clients); err != nil {
		return err
	}
	from, err := r.now(ctx, k.Object("list", 0))
	if err != nil {
		return err
	}
	audience, err := load.Watch(ctx, r.server.Target, k.Objects("list")+"?watch=true&resourceVersion="+from, watchers)
	if err != nil {
		return err
	}
	defer audience.Close()
	var reads, writes *load.Result
	var readErr, writeErr error
	var both sync.WaitGroup
	began := time.Now()
	both.Go(func() {
		reads, readErr = load.Plan{Clients: 16, For: r.size.Fleet, Make: func(n int, q *load.Request) {
			if *q = get(k.Object("list", n*7919%objects), payload.Least); n%10 == 9 {
				*q = get(k.Objects("page"), payload.Least*50)
			}
		}}.Run(ctx, r.server.Target)
	})
	both.Go(func() {
		writes, writeErr = load.Plan{Clients: 8, For: r.size.Fleet, Make: func(n int, q *load.Request) {
			if *q = patch(k.Object("list", n*7919%objects), n); n%5 == 4 {
				*q = post(k.Objects("list"), k.Widget("list", objects+n))
			}
		}}.Run(ctx, r.server.Target)
	})
	both.Wait()
	if readErr != nil || writeErr != nil {
		return fmt.Errorf("fleet: %w, %w", readErr, writeErr)
	}
	if err := audience.Wait(ctx, int64(watchers)*int64(writes.Done), 2*time.Minute); err != nil {
		writes.Errors++
		writes.FirstError = err.Error()
	}
	took := time.Since(began)
	r.putResult("fleet-reads", reads.Rate(), reads)
	r.putResult("fleet-writes", writes.Rate(), writes)
	r.putResult("fleet-p99", milliseconds(writes.Percentile(99)), writes)
	r.putResult("fleet-events", float64(audience.Seen())/took.Seconds(), writes)
	return nil
}
