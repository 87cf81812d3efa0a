package row

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// definitions measures many definitions: the time until all are served, their memory, and the first
// use of one.
func definitions(s Size, corpus *payload.Corpus) *Scenario {
	n := s.Defined
	return &Scenario{
		Name: "definitions", Title: fmt.Sprintf("%d CRDs: %s, repeated in groups of their own", n, corpus.What), Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		Rows: []Row{
			{ID: "load", Title: fmt.Sprintf("%d CRDs: all served", n), Unit: "s", Aim: aimOf(s, 10), Stood: 101},
			{ID: "load-cpu", Title: fmt.Sprintf("%d CRDs: processor time of that", n), Unit: "CPU s"},
			{ID: "load-memory", Title: fmt.Sprintf("%d CRDs: memory after that", n), Unit: "MB", Aim: aimOf(s, 250), Stood: 8850},
			{ID: "load-openapi", Title: fmt.Sprintf("%d CRDs: memory once OpenAPI v2 was read", n), Unit: "MB", Aim: aimOf(s, 250), Stood: 10_600},
			{ID: "load-restart", Title: fmt.Sprintf("%d CRDs: restart to ready", n), Unit: "ms"},
			{ID: "cold", Title: "first write of a kind without use since the start", Unit: "ms"},
		},
		run: func(ctx context.Context, r *Run) error { return r.definitions(ctx, corpus) },
	}
}

// aimOf returns an aim for the full size, and none for other sizes.
func aimOf(s Size, aim float64) float64 {
	if s.Mode != "full" {
		return 0
	}
	return aim
}

func (r *Run) definitions(ctx context.Context, corpus *payload.Corpus) error {
	before, err := r.server.Usage()
	if err != nil {
		return err
	}
	began := time.Now()
	got, err := load.Plan{Clients: 4, Count: r.size.Defined, Make: func(n int, q *load.Request) {
		*q = post(payload.DefinitionsPath, corpus.Definition(n).Body)
	}}.Run(ctx, r.server.Target)
	if err != nil {
		return err
	}
	if got.Errors > 0 {
		return fmt.Errorf("%d definitions failed: %s", got.Errors, got.FirstError)
	}
	c, err := load.Dial(ctx, r.server.Target)
	if err != nil {
		return err
	}
	defer c.Close()
	// Every definition is served.
	for n := range r.size.Defined {
		q := get(corpus.Definition(n).Objects, 0)
		if _, err := served(ctx, c, &q); err != nil {
			return err
		}
	}
	r.put("load", time.Since(began).Seconds(), "POSTs "+got.Elapsed.Round(time.Millisecond).String())
	after, err := r.server.Usage()
	if err != nil {
		return err
	}
	r.put("load-cpu", (after.CPU - before.CPU).Seconds(), "")
	r.put("load-memory", megabytes(after.Resident), parts(after))
	if _, err := r.must(ctx, get("/openapi/v2", 1000)); err != nil {
		return err
	}
	if err := r.memory("load-openapi"); err != nil {
		return err
	}
	if err := r.restart(ctx, server.Options{StartTimeout: 10 * time.Minute}); err != nil {
		return err
	}
	r.put("load-restart", milliseconds(r.server.Ready), "")
	return r.cold(ctx, corpus)
}

// served repeats a request until the status is neither 404 nor 429: with these, the kind is not served
// yet.
func served(ctx context.Context, c *load.Conn, q *load.Request) (time.Duration, error) {
	began := time.Now()
	for {
		got, err := c.Do(q)
		switch took := time.Since(began); {
		case err != nil:
			return 0, err
		case got.Status != 404 && got.Status != 429:
			if got.Status >= 300 {
				return 0, fmt.Errorf("%s: %d %s", q.Path, got.Status, got.Start)
			}
			return took, nil
		case took > servedWithin:
			return 0, fmt.Errorf("%s is not served", q.Path)
		}
		if err := settle(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// cold posts the first object of unused kinds after a start of the server. Most are invalid, which
// takes the schema as well.
func (r *Run) cold(ctx context.Context, corpus *payload.Corpus) error {
	c, err := load.Dial(ctx, r.server.Target)
	if err != nil {
		return err
	}
	defer c.Close()
	// A server that is ready may not serve all definitions yet. Wait for the last one.
	q := get(corpus.Definition(r.size.Defined-1).Objects, 0)
	if _, err := served(ctx, c, &q); err != nil {
		return err
	}
	if err := settle(ctx, r.size.Settle); err != nil {
		return err
	}
	var took []time.Duration
	for n := range min(20, r.size.Defined-1) {
		d := corpus.Definition(n)
		q := post(d.Objects, d.First)
		one, err := first(ctx, c, &q, time.Now())
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	slices.Sort(took)
	r.put("cold", milliseconds(took[len(took)/2]), fmt.Sprintf("median of %d, most %s", len(took), short(took[len(took)-1])))
	return nil
}

// stored measures many objects: a list of them, and a start with them.
func stored(s Size) *Scenario {
	n := s.Stored
	return &Scenario{
		Name: "stored", Title: fmt.Sprintf("%d objects", n), Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		Rows: []Row{
			{ID: "stored-fill", Title: fmt.Sprintf("%d objects: created, 32 clients", n), Unit: "/s", Higher: true},
			{ID: "stored-list", Title: fmt.Sprintf("%d objects: list of all", n), Unit: "ms"},
			{ID: "stored-peak", Title: fmt.Sprintf("%d objects: memory at most meanwhile", n), Unit: "MB"},
			{ID: "stored-ready", Title: fmt.Sprintf("%d objects: restart to ready", n), Unit: "ms"},
			{ID: "stored-first", Title: fmt.Sprintf("%d objects: restart to the first list of all", n), Unit: "ms"},
			{ID: "stored-memory", Title: fmt.Sprintf("%d objects: memory after restart and list", n), Unit: "MB"},
		},
		run: runStored,
	}
}

func runStored(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "a", "b"); err != nil {
		return err
	}
	got, err := r.fill(ctx, k, func(n int) string { return string(rune('a' + n%2)) }, 0, r.size.Stored, clients)
	if err != nil {
		return err
	}
	r.putResult("stored-fill", got.Rate(), got)
	all := get(k.Objects(""), payload.Least*r.size.Stored)
	if _, err := r.must(ctx, all); err != nil { // warms up
		return err
	}
	if err := r.server.ResetPeak(); err != nil {
		return err
	}
	const lists = 3
	listed, err := load.Plan{Clients: 1, Count: lists, Make: func(_ int, q *load.Request) { *q = all }}.Run(ctx, r.server.Target)
	if err != nil {
		return err
	}
	r.putResult("stored-list", milliseconds(listed.Percentile(50)), listed)
	u, err := r.server.Usage()
	if err != nil {
		return err
	}
	r.put("stored-peak", megabytes(u.Peak), "of it resident afterwards: "+fmt.Sprintf("%.0f MB", megabytes(u.Resident)))
	began := time.Now()
	if err := r.server.Stop(); err != nil {
		return err
	}
	r.log("  stopped in %s", short(time.Since(began)))
	began = time.Now()
	if err := r.start(ctx, server.Options{}); err != nil {
		return err
	}
	r.put("stored-ready", milliseconds(r.server.Ready), "")
	c, err := load.Dial(ctx, r.server.Target)
	if err != nil {
		return err
	}
	defer c.Close()
	// A server that is ready may not serve its definitions yet.
	if _, err := served(ctx, c, &all); err != nil {
		return err
	}
	r.put("stored-first", milliseconds(time.Since(began)), "")
	return r.memory("stored-memory")
}
