package row

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

const clients = 32

// warmup is the number of requests before the counted ones.
const warmup = 200

// table is the table in DESIGN, from the start of a server to its memory at the end.
func table(s Size) *Scenario {
	return &Scenario{
		Name: "table", Title: "One server from its start to the end of the load", Pairs: s.Pairs, Sides: server.Programs.AsShipped,
		Rows: []Row{
			{ID: "ready", Title: "start to ready", Unit: "ms", Aim: 50, Stood: 2500},
			{ID: "idle", Title: "memory, idle", Unit: "MB", Aim: 35, Stood: 310},
			{ID: "define", Title: "CRD POST to first object stored", Unit: "ms", Aim: 10, Stood: 2020},
			{ID: "create-1", Title: "create, 1 client", Unit: "/s", Higher: true, Aim: 1600, Stood: 520},
			{ID: "create-32", Title: "create, 32 clients", Unit: "/s", Higher: true, Aim: 9000, Stood: 1150},
			{ID: "get-32", Title: "get, 32 clients", Unit: "/s", Higher: true, Aim: 18000, Stood: 2850},
			{ID: "list", Title: fmt.Sprintf("list %d objects, 4 clients", s.List), Unit: "/s", Higher: true, Aim: 50, Stood: 5.5},
			{ID: "patch-32", Title: "merge patch, 32 clients", Unit: "/s", Higher: true, Aim: 6000, Stood: 820},
			{ID: "apply-32", Title: "server-side apply, 32 clients", Unit: "/s", Higher: true, Aim: 4000, Stood: 835},
			{ID: "fan-out", Title: "watch fan-out, 200 watchers", Unit: " events/s", Higher: true, Aim: 400_000, Stood: 92_000},
			{ID: "delete-32", Title: "delete, 32 clients", Unit: "/s", Higher: true, Aim: 9000, Stood: 1090},
			{ID: "after", Title: "memory after that run", Unit: "MB", Aim: 120, Stood: 1032},
		},
		run: runTable,
	}
}

func runTable(ctx context.Context, r *Run) error {
	r.put("ready", milliseconds(r.server.Ready), "")
	if err := settle(ctx, r.size.Settle); err != nil {
		return err
	}
	if err := r.memory("idle"); err != nil {
		return err
	}
	var took []time.Duration
	for i := range 5 {
		d, err := r.define(ctx, payload.Kind{Group: fmt.Sprintf("g%d.%s", i, payload.Group)})
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	r.put("define", milliseconds(took[2]), "median of 5")
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "warm", "one", "list", "rest"); err != nil {
		return err
	}
	for _, step := range []func(context.Context, payload.Kind) error{
		r.creates, r.reads, r.patches, r.fanOut, r.deletes,
	} {
		if err := step(ctx, k); err != nil {
			return err
		}
	}
	return r.memory("after")
}

func settle(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rate runs a plan and records its rate and the server's CPU time for each request. The CPU time
// depends less on the load of the machine.
func (r *Run) rate(ctx context.Context, id string, p load.Plan) error {
	_, err := r.rateAs(ctx, id, r.server.Target, p)
	return err
}

// rateAs is rate for requests to a target. It returns the CPU time of each request.
func (r *Run) rateAs(ctx context.Context, id string, target load.Target, p load.Plan) (time.Duration, error) {
	before, err := r.server.Usage()
	if err != nil {
		return 0, err
	}
	got, err := p.Run(ctx, target)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", id, err)
	}
	after, err := r.server.Usage()
	if err != nil {
		return 0, err
	}
	each := func(cpu time.Duration) time.Duration { return cpu / time.Duration(p.Warmup+got.Done+got.Errors) }
	all := each(after.CPU - before.CPU)
	detail := percentiles(got) + ", " + short(all) + " of processor each"
	if etcd := after.Of(storing).CPU - before.Of(storing).CPU; etcd > 0 {
		detail += ", " + short(each(etcd)) + " of it etcd's"
	}
	r.putDetailed(id, got.Rate(), got, detail)
	return all, nil
}

// creates leaves r.size.List objects in the namespace "list".
func (r *Run) creates(ctx context.Context, k payload.Kind) error {
	make := func(namespace func(n int) string) func(int, *load.Request) {
		return func(n int, q *load.Request) {
			*q = post(k.Objects(namespace(n)), k.Widget(namespace(n), n))
			q.Least = payload.Least
		}
	}
	if err := r.rate(ctx, "create-1", load.Plan{Clients: 1, Warmup: warmup, Count: r.size.One, Make: make(in("one"))}); err != nil {
		return err
	}
	spread := func(n int) string {
		switch n -= warmup; {
		case n < 0:
			return "warm"
		case n < r.size.List:
			return "list"
		}
		return "rest"
	}
	if err := r.rate(ctx, "create-32", load.Plan{Clients: clients, Warmup: warmup, Count: r.size.Many, Make: make(spread)}); err != nil {
		return err
	}
	if missing := r.size.List - r.size.Many; missing > 0 {
		_, err := r.fill(ctx, k, in("list"), warmup+r.size.Many, missing, clients)
		return err
	}
	return nil
}

// some returns the number of an object in the namespace "list", a different one for each n.
func (r *Run) some(n int) int { return warmup + n*7919%r.size.List }

func (r *Run) reads(ctx context.Context, k payload.Kind) error {
	err := r.rate(ctx, "get-32", load.Plan{Clients: clients, Warmup: warmup, For: r.size.Read, Make: func(n int, q *load.Request) {
		*q = get(k.Object("list", r.some(n)), payload.Least)
	}})
	if err != nil {
		return err
	}
	return r.rate(ctx, "list", load.Plan{Clients: 4, Warmup: 4, For: r.size.Read, Make: func(n int, q *load.Request) {
		*q = get(k.Objects("list"), payload.Least*r.size.List)
	}})
}

func (r *Run) patches(ctx context.Context, k payload.Kind) error {
	err := r.rate(ctx, "patch-32", load.Plan{Clients: clients, Warmup: warmup, Count: r.size.Many, Make: func(n int, q *load.Request) {
		*q = patch(k.Object("list", r.some(n)), n)
	}})
	if err != nil {
		return err
	}
	return r.rate(ctx, "apply-32", load.Plan{Clients: clients, Warmup: warmup, Count: r.size.Many, Make: func(n int, q *load.Request) {
		*q = apply(k, "list", r.some(n), n)
	}})
}

// apply applies the nth object.
func apply(k payload.Kind, namespace string, n, revision int) load.Request {
	return load.Request{
		Method: "PATCH", Path: k.Object(namespace, n) + "?fieldManager=bench-apply&force=true",
		ContentType: "application/apply-patch+yaml", Body: k.Applied(namespace, n, revision), Least: payload.Least,
	}
}

func patch(path string, revision int) load.Request {
	return load.Request{
		Method: "PATCH", Path: path, ContentType: "application/merge-patch+json",
		Body: payload.Patch(revision), Least: payload.Least,
	}
}

// fanOut measures 8 writers and 200 watches, until all watches have all events.
func (r *Run) fanOut(ctx context.Context, k payload.Kind) error {
	const watchers = 200
	rate, writes, err := r.watched(ctx, k, "list", watchers, r.size.Events)
	if err != nil {
		return fmt.Errorf("fan-out: %w", err)
	}
	r.putResult("fan-out", rate, writes)
	return nil
}

// watched has 8 clients patch watched objects, and returns the number of delivered events a second.
func (r *Run) watched(ctx context.Context, k payload.Kind, namespace string, watchers, events int) (float64, *load.Result, error) {
	from, err := r.now(ctx, k.Object(namespace, r.some(0)))
	if err != nil {
		return 0, nil, err
	}
	audience, err := load.Watch(ctx, r.server.Target, k.Objects(namespace)+"?watch=true&resourceVersion="+from, watchers)
	if err != nil {
		return 0, nil, err
	}
	defer audience.Close()
	const warm = 20
	r.revision += 1_000_000 // a patch without a change is no event
	before := audience.Seen()
	began := time.Now()
	got, err := load.Plan{Clients: 8, Warmup: warm, Count: events, Make: func(n int, q *load.Request) {
		*q = patch(k.Object(namespace, r.some(n)), r.revision+n)
	}}.Run(ctx, r.server.Target)
	if err != nil {
		return 0, nil, err
	}
	all := int64(watchers) * int64(got.Done+warm)
	if err := audience.Wait(ctx, before+all, 2*time.Minute); err != nil {
		got.Errors++
		got.FirstError = err.Error()
	}
	return float64(audience.Seen()-before) / time.Since(began).Seconds(), got, nil
}

func (r *Run) deletes(ctx context.Context, k payload.Kind) error {
	return r.rate(ctx, "delete-32", load.Plan{Clients: clients, Count: min(r.size.Many, r.size.List), Make: func(n int, q *load.Request) {
		*q = load.Request{Method: "DELETE", Path: k.Object("list", warmup+n)}
	}})
}

// now returns a resourceVersion for the start of a watch, from a write.
func (r *Run) now(ctx context.Context, path string) (string, error) {
	c, err := load.Dial(ctx, r.server.Target)
	if err != nil {
		return "", err
	}
	defer c.Close()
	q := load.Request{
		Method: "PATCH", Path: path, ContentType: "application/merge-patch+json",
		Body: []byte(`{"metadata":{"annotations":{"now":"` + fmt.Sprint(time.Now().UnixNano()) + `"}}}`),
	}
	got, err := c.Do(&q)
	if err != nil {
		return "", err
	}
	_, after, found := bytes.Cut(got.Start, []byte(`"resourceVersion":"`))
	version, _, ended := bytes.Cut(after, []byte{'"'})
	if !found || !ended {
		return "", fmt.Errorf("no resourceVersion: %d %.300s", got.Status, got.Start)
	}
	return string(version), nil
}
