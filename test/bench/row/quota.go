package row

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// creators is the number of clients that create objects under one quota.
const creators = 64

// underQuota measures the cost of a quota on the number of objects.
func underQuota(s Size) *Scenario {
	return &Scenario{
		Name: "quota", Title: "A quota of a custom kind", Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		About: "The quota has its status before anything is created, and is not reached. anykind stores each object together with what is charged for it; " +
			"a kube-apiserver charges those who wait together, before it stores them.",
		Rows: []Row{
			{ID: "quota-none", Title: "create without a quota, 64 clients", Unit: "/s", Higher: true},
			{ID: "quota-one", Title: "create under a quota, 64 clients", Unit: "/s", Higher: true},
		},
		run: runUnderQuota,
	}
}

func runUnderQuota(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "free", "limited"); err != nil {
		return err
	}
	quota, status := k.Quota("limited")
	if _, err := r.must(ctx, post("/api/v1/namespaces/limited/resourcequotas", quota)); err != nil {
		return err
	}
	prepared := load.Request{Method: http.MethodPatch, Path: "/api/v1/namespaces/limited/resourcequotas/objects/status", ContentType: "application/merge-patch+json", Body: status}
	if _, err := r.must(ctx, prepared); err != nil {
		return err
	}
	if err := settle(ctx, r.size.Settle); err != nil { // by then a kube-apiserver has the quota in its cache
		return err
	}
	for _, row := range [][2]string{{"quota-none", "free"}, {"quota-one", "limited"}} {
		plan := load.Plan{Clients: creators, Warmup: warmup, Count: r.size.Many, Make: func(n int, q *load.Request) {
			*q = post(k.Objects(row[1]), k.Widget(row[1], n))
			q.Least = payload.Least
		}}
		if err := r.rate(ctx, row[0], plan); err != nil {
			return err
		}
	}
	return nil
}
