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

const (
	greedyClients = 500
	greedyObjects = 300
)

// politePause is the time between two requests of the polite client.
const politePause = 5 * time.Millisecond

// politeWarmup is less than for other loads: beside the greedy clients, a request of the reference takes up to a second.
const politeWarmup = 20

// greedy measures the wait of a polite client beside a user with very many clients.
func greedy(s Size) *Scenario {
	sc := &Scenario{
		Name: "greedy", Title: fmt.Sprintf("%d clients of one user list %d objects, and never wait", greedyClients, greedyObjects), Pairs: s.Pairs, Sides: server.Programs.AsShipped,
		About: "A polite client sends a request every 5 ms, as the user of each row: alone, and then beside the clients that list. " +
			"These are a process of its own, with the least priority (nice 19), so that the server has precedence.",
		run: runGreedy,
	}
	for _, p := range polites(payload.Kind{Group: payload.Group}) {
		sc.Rows = append(sc.Rows,
			Row{ID: p.id + "-alone", Title: p.title + ", alone: p99", Unit: "ms"},
			Row{ID: p.id, Title: p.title + ", beside them: p99", Unit: "ms"},
		)
	}
	sc.Rows = append(sc.Rows, Row{ID: "greedy-lists", Title: "lists of the greedy user meanwhile", Unit: "/s", Higher: true})
	return sc
}

// A polite is a client that waits between its requests.
type polite struct {
	id, title string
	user      string
	make      func(n int, q *load.Request)
}

func polites(k payload.Kind) []polite {
	gets := func(n int, q *load.Request) { *q = get(k.Object("list", n*7919%greedyObjects), payload.Least) }
	return []polite{
		{"greedy-user", "a get of another user", server.Other, gets},
		{"greedy-administrator", "a get of an administrator", server.Administrator, gets},
		{"greedy-node", "a node's update of its Lease", server.Node, func(n int, q *load.Request) {
			*q = load.Request{Method: "PATCH", Path: payload.LeasesPath + "/" + server.NodeName, ContentType: "application/merge-patch+json", Body: payload.Heartbeat(n)}
		}},
	}
}

func runGreedy(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "list"); err != nil {
		return err
	}
	rights := append(k.UserRole("list", server.User), k.UserRole("list", server.Other)...)
	if err := r.configure(ctx, append(rights, payload.NodeLease(server.NodeName, server.Node)...)...); err != nil {
		return err
	}
	if _, err := r.fill(ctx, k, in("list"), 0, greedyObjects, clients); err != nil {
		return err
	}
	if err := r.polite(ctx, k, "-alone"); err != nil {
		return err
	}
	crowd, err := load.Apart(ctx, r.server.As(server.User), r.server.Roots(), load.Repeated{
		Clients: greedyClients,
		Request: load.Request{Method: "GET", Path: k.Objects("list"), Least: greedyObjects * payload.Least, Refusable: 429},
	})
	if err != nil {
		return err
	}
	measured := r.polite(ctx, k, "")
	result, err := crowd.End()
	if err = errors.Join(measured, err); err != nil {
		return err
	}
	r.putDetailed("greedy-lists", float64(result.Done-result.Refused)/result.Elapsed.Seconds(), result, fmt.Sprintf("%d lists, %d refused", result.Done-result.Refused, result.Refused))
	return nil
}

// polite measures each polite client by itself.
func (r *Run) polite(ctx context.Context, k payload.Kind, suffix string) error {
	for _, p := range polites(k) {
		got, err := load.Plan{Clients: 1, Warmup: politeWarmup, For: r.size.Read, Pause: politePause, Make: p.make}.Run(ctx, r.server.As(p.user))
		if err != nil {
			return err
		}
		r.putResult(p.id+suffix, milliseconds(got.Percentile(99)), got)
	}
	return nil
}
