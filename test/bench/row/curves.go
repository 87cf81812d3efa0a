package row

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// errFull means that a server would exhaust the memory of the machine.
var errFull = errors.New("stopped: less than 1.5 GB of memory were left on the machine")

// room returns errFull if the machine is short of memory.
func room() error {
	if n, err := available(); err == nil && n < 1_500_000_000 {
		return errFull
	}
	return nil
}

func byObjects(s Size) *Scenario {
	return &Scenario{
		Name: "by-objects", Title: "Objects of one kind", Pairs: s.CurvePairs, Sides: server.Programs.AsShipped,
		Curve: &Curve{
			Along: "objects",
			Shape: "A create does not depend on how many objects there are but for the depth of trees, which grows with the logarithm. To list all, in parts of 500 as clients do, takes time in proportion to their number: each object is copied to the client once. Memory grows with the bytes that are stored.",
			Rows: []Row{
				{ID: "objects-create", Title: "creates, 32 clients", Unit: "/s", Higher: true},
				{ID: "objects-list", Title: "list of all in parts of 500", Unit: "ms"},
				{ID: "objects-memory", Title: "memory", Unit: "MB"},
			},
		},
		run: runByObjects,
	}
}

func runByObjects(ctx context.Context, r *Run) error {
	within, cancel := context.WithTimeout(ctx, r.size.CurveTime)
	defer cancel()
	err := r.byObjects(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("stopped: it took more than %v to get there", r.size.CurveTime)
	}
	return err
}

func (r *Run) byObjects(ctx context.Context) error {
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "list"); err != nil {
		return err
	}
	const measured = 1000 // creates that are measured, included in the objects
	have := 0
	for _, n := range r.size.Objects {
		if err := room(); err != nil {
			return err
		}
		if more := n - have - measured; more > 0 {
			if _, err := r.fill(ctx, k, in("list"), have, more, clients); err != nil {
				return err
			}
		}
		got, err := r.fill(ctx, k, in("list"), n-measured, measured, clients)
		if err != nil {
			return err
		}
		have = n
		r.point("objects-create", n, Value{Value: got.Rate(), Detail: "p99 " + short(got.Percentile(99))})
		took, err := r.listInParts(ctx, k, n)
		if err != nil {
			return err
		}
		r.point("objects-list", n, Value{Value: milliseconds(took)})
		if err := r.memoryAt("objects-memory", n); err != nil {
			return err
		}
	}
	return nil
}

// listInParts lists all objects in chunks, by continue tokens.
func (r *Run) listInParts(ctx context.Context, k payload.Kind, n int) (time.Duration, error) {
	c, err := load.Dial(ctx, r.server.Target)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	began := time.Now()
	token, size := "", 0
	for {
		got, rest, err := c.Part(k.Objects("") + "?limit=500" + token)
		if err != nil {
			return 0, err
		}
		size += got
		if rest == "" {
			break
		}
		token = "&continue=" + rest
	}
	if size < n*payload.Least {
		return 0, fmt.Errorf("%d objects were listed in %d bytes", n, size)
	}
	return time.Since(began), nil
}

func byKinds(s Size) *Scenario {
	return &Scenario{
		Name: "by-kinds", Title: "CustomResourceDefinitions", Pairs: s.CurvePairs, Sides: server.Programs.AsShipped,
		Curve: &Curve{
			Along: "CRDs",
			Shape: "anykind compiles nothing until a kind is used, and replaces the set of what is served by one that differs in the new kind, so the next definition costs the same however many there are. kube-apiserver does work for every kind that there is whenever one is added, above all to publish OpenAPI, and keeps each in several forms.",
			Rows: []Row{
				{ID: "kinds-define", Title: "CRD POST to first object stored", Unit: "ms"},
				{ID: "kinds-memory", Title: "memory", Unit: "MB"},
			},
		},
		run: runByKinds,
	}
}

func runByKinds(ctx context.Context, r *Run) error {
	if _, err := r.define(ctx, payload.Kind{Group: "warm." + payload.Group}); err != nil {
		return err
	}
	have := 0
	for _, n := range r.size.Kinds {
		for have < n-3 {
			if err := room(); err != nil {
				return err
			}
			part := min(200, n-3-have)
			got, err := load.Plan{Clients: 4, Count: part, Make: func(i int, q *load.Request) {
				*q = post(payload.DefinitionsPath, payload.Kind{Group: fmt.Sprintf("g%d.%s", have+i, payload.Group)}.Definition())
			}}.Run(ctx, r.server.Target)
			if err != nil {
				return err
			}
			if got.Errors > 0 {
				return errors.New(got.FirstError)
			}
			have += part
		}
		var least time.Duration
		for ; have < n; have++ {
			took, err := r.define(ctx, payload.Kind{Group: fmt.Sprintf("g%d.%s", have, payload.Group)})
			if err != nil {
				return err
			}
			if least == 0 || took < least {
				least = took
			}
		}
		r.point("kinds-define", n, Value{Value: milliseconds(least), Detail: "best of 3"})
		if err := r.memoryAt("kinds-memory", n); err != nil {
			return err
		}
	}
	return nil
}

func byWatchers(s Size) *Scenario {
	return &Scenario{
		Name: "by-watchers", Title: "Watchers of one kind", Pairs: s.CurvePairs, Sides: server.Programs.AsShipped,
		Curve: &Curve{
			Along: "watchers",
			Shape: "An event is encoded once, and then written to every watcher: with few, the rate is that of the writes, times the watchers; with many, it is what the machine can encrypt and write to sockets, client included, and a write waits its turn for the processor among those who are told.",
			Rows: []Row{
				{ID: "watchers-events", Title: "events that reach watchers", Unit: "/s", Higher: true},
				{ID: "watchers-p50", Title: "writes by 8 clients meanwhile, p50", Unit: "ms"},
				{ID: "watchers-memory", Title: "memory", Unit: "MB"},
			},
		},
		run: runByWatchers,
	}
}

func runByWatchers(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "list"); err != nil {
		return err
	}
	if _, err := r.fill(ctx, k, in("list"), warmup, r.size.List, clients); err != nil {
		return err
	}
	for _, n := range r.size.Watchers {
		if err := room(); err != nil {
			return err
		}
		events := max(20, min(r.size.Events, 200_000/n))
		rate, writes, err := r.watched(ctx, k, "list", n, events)
		if err != nil {
			return err
		}
		r.point("watchers-events", n, Value{Value: rate, Errors: writes.Errors, FirstError: writes.FirstError, Detail: fmt.Sprintf("%d writes", writes.Done)})
		r.point("watchers-p50", n, Value{Value: milliseconds(writes.Percentile(50)), Detail: "p99 " + short(writes.Percentile(99))})
		if err := r.memoryAt("watchers-memory", n); err != nil {
			return err
		}
	}
	return nil
}
